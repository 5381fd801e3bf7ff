//! The parts of the wasm format that a build needs: a header, then sections with a kind, a length and a content.

use anyhow::{Context, Result, ensure};

const HEADER: &[u8] = b"\0asm\x01\0\0\0";
const CUSTOM: u8 = 0;
/// Sections with names of functions, for debuggers and stack traces, and of the tools. A fifth of the download.
const DISPENSABLE: &[&[u8]] = &[b"name", b"producers"];

/// The same program without the sections that only a debugger uses.
pub fn without_names(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut rest = wasm.strip_prefix(HEADER).context("this is not a wasm file")?;
    let mut kept = HEADER.to_vec();
    while let Some(kind) = rest.first() {
        let (length, content_at) = leb128(rest, 1)?;
        let end = content_at.checked_add(length).filter(|end| *end <= rest.len());
        let (section, after) = rest.split_at(end.context("the wasm file ends too early")?);
        let dispensable = *kind == CUSTOM && {
            let (name_length, name_at) = leb128(section, content_at)?;
            let name = section.get(name_at..name_at.saturating_add(name_length));
            DISPENSABLE.contains(&name.context("a section of the wasm file has no name")?)
        };
        if !dispensable {
            kept.extend_from_slice(section);
        }
        rest = after;
    }
    Ok(kept)
}

/// An unsigned number of at most 32 bits at `at`, and where it ends.
fn leb128(bytes: &[u8], at: usize) -> Result<(usize, usize)> {
    let mut value = 0_usize;
    for (n, byte) in bytes.iter().skip(at).take(5).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Ok((value, at + n + 1));
        }
    }
    ensure!(bytes.len() < at + 5, "a number of the wasm file is too long");
    anyhow::bail!("the wasm file ends too early")
}

#[cfg(test)]
mod tests {
    use super::{HEADER, without_names};

    fn file(sections: &[&[u8]]) -> Vec<u8> {
        [&[HEADER], sections].concat().concat()
    }

    #[test]
    fn only_names_go() {
        let (code, names, features) = (b"\x0a\x02xy", b"\x00\x06\x04nameA", b"\x00\x03\x02tf");
        let whole = file(&[code, names, features]);
        assert_eq!(without_names(&whole).unwrap(), file(&[code, features]));
        let once = without_names(&whole).unwrap();
        assert_eq!(without_names(&once).unwrap(), once);
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let whole = file(&[b"\x0a\x02xy", b"\x00\x06\x04nameA"]);
        for end in [0, 4, 9, 10, 14, 18] {
            assert!(without_names(&whole[..end]).is_err(), "{end}");
        }
        assert!(without_names(&file(&[b"\x0a\xff\xff\xff\xff\xff"])).is_err());
    }
}
