//! The bytes of a file as its decoder reads them: decompressed when the file is gzip, else as they are.

use crate::gunzip::{Fault, Gunzip, MAGIC};

/// Decompresses a file pushed in pieces, if it is compressed.
#[derive(Debug, Default)]
pub struct Unpacker {
    form: Form,
    file_bytes: u64,
}

#[derive(Debug)]
enum Form {
    /// The first bytes, too few yet to know.
    Unknown(Vec<u8>),
    Plain,
    Gzip(Box<Gunzip>),
}

impl Default for Form {
    fn default() -> Self {
        Self::Unknown(Vec::new())
    }
}

/// A file that was decompressed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    /// Whether it is compressed with gzip.
    pub gzip: bool,
    /// Its size.
    pub file_bytes: u64,
    /// What is wrong with the compressed data.
    pub faults: Vec<Fault>,
}

impl Unpacker {
    /// At the start of a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for a file that was read, and checked, before: its form is known, and the checksums are not compared again.
    #[must_use]
    pub fn again(gzip: bool) -> Self {
        let form = if gzip { Form::Gzip(Box::new(Gunzip::again())) } else { Form::Plain };
        Self { form, file_bytes: 0 }
    }

    /// Reads the next piece of the file and hands its decompressed bytes to `sink`.
    pub fn push(&mut self, file_bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        self.file_bytes += file_bytes.len() as u64;
        if let Form::Unknown(head) = &mut self.form {
            head.extend_from_slice(file_bytes);
            if head.len() < MAGIC.len() {
                return;
            }
            let head = std::mem::take(head);
            self.form = match head.starts_with(&MAGIC) {
                true => Form::Gzip(Box::default()),
                false => Form::Plain,
            };
            self.feed(&head, sink);
        } else {
            self.feed(file_bytes, sink);
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) {
        match &mut self.form {
            Form::Gzip(gunzip) => gunzip.push(bytes, sink),
            Form::Plain | Form::Unknown(_) => sink(bytes),
        }
    }

    /// The file ends here. (One of a single byte is handed to `sink` only now.)
    pub fn finish(self, sink: &mut dyn FnMut(&[u8])) -> Unpacked {
        let (gzip, faults) = match self.form {
            Form::Unknown(head) => {
                sink(&head);
                (false, Vec::new())
            }
            Form::Plain => (false, Vec::new()),
            Form::Gzip(gunzip) => (true, gunzip.finish()),
        };
        Unpacked { gzip, file_bytes: self.file_bytes, faults }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(file: &[u8], size: usize) -> (Vec<u8>, Unpacked) {
        let (mut unpacker, mut plain) = (Unpacker::new(), Vec::new());
        for piece in file.chunks(size) {
            unpacker.push(piece, &mut |bytes| plain.extend_from_slice(bytes));
        }
        let end = unpacker.finish(&mut |bytes| plain.extend_from_slice(bytes));
        (plain, end)
    }

    #[test]
    fn files_of_either_form_in_any_chunking() {
        for text in [&b""[..], b"{", b"{\"a\":1}"] {
            for (file, gzip) in [(text.to_vec(), false), (testkit::gzip(text), true)] {
                for size in [1, 2, 1000] {
                    let end = Unpacked { gzip, file_bytes: file.len() as u64, faults: Vec::new() };
                    assert_eq!(unpacked(&file, size), (text.to_vec(), end), "pieces of {size}");
                }
            }
        }
    }

    #[test]
    fn a_second_pass_reads_the_same() {
        let text = b"[1, 2]";
        for (file, gzip) in [(text.to_vec(), false), (testkit::gzip(text), true)] {
            let (mut unpacker, mut plain) = (Unpacker::again(gzip), Vec::new());
            file.iter().for_each(|byte| {
                unpacker.push(&[*byte], &mut |bytes| plain.extend_from_slice(bytes));
            });
            assert_eq!(plain, text);
        }
    }
}
