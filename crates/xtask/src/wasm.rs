//! The parts of the wasm format that a build needs: a header, then sections with a kind, a length and a content.

use anyhow::{Context, Result, ensure};

pub const HEADER: &[u8] = b"\0asm\x01\0\0\0";
const CUSTOM: u8 = 0;
const IMPORT: u8 = 2;
/// The kind of an import.
const FUNCTION: u8 = 0;
/// Sections with names of functions, for debuggers and stack traces, and of the tools. A fifth of the download.
const DISPENSABLE: &[&[u8]] = &[b"name", b"producers"];

/// The same program without the sections that only a debugger uses.
pub fn without_names(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut kept = HEADER.to_vec();
    for section in sections(wasm)? {
        let dispensable = section.kind == CUSTOM && {
            let name = string(section.content, &mut 0);
            DISPENSABLE.contains(&name.context("a section of the wasm file has no name")?)
        };
        if !dispensable {
            kept.extend_from_slice(section.whole);
        }
    }
    Ok(kept)
}

/// The same program with every import, all of which are functions, under the name that `rename` gives it.
pub fn with_imports(
    wasm: &[u8],
    mut rename: impl FnMut(&str) -> Result<String>,
) -> Result<Vec<u8>> {
    let mut renamed = HEADER.to_vec();
    for Section { kind, content, whole } in sections(wasm)? {
        if kind != IMPORT {
            renamed.extend_from_slice(whole);
            continue;
        }
        let (n, mut at) = leb128(content, 0)?;
        let mut imports = encoded(n);
        for _ in 0..n {
            let module = string(content, &mut at)?;
            let name = std::str::from_utf8(string(content, &mut at)?)?;
            let new_name = rename(name)?;
            ensure!(content.get(at) == Some(&FUNCTION), "the import {name} is no function");
            let (of_type, end) = leb128(content, at + 1)?;
            at = end;
            for text in [module, new_name.as_bytes()] {
                imports.extend(encoded(text.len()));
                imports.extend_from_slice(text);
            }
            imports.push(FUNCTION);
            imports.extend(encoded(of_type));
        }
        renamed.push(IMPORT);
        renamed.extend(encoded(imports.len()));
        renamed.extend(imports);
    }
    Ok(renamed)
}

pub struct Section<'a> {
    pub kind: u8,
    pub content: &'a [u8],
    /// With kind and length.
    pub whole: &'a [u8],
}

pub fn sections(wasm: &[u8]) -> Result<Vec<Section<'_>>> {
    let mut rest = wasm.strip_prefix(HEADER).context("this is not a wasm file")?;
    let mut found = Vec::new();
    while let Some(kind) = rest.first() {
        let (length, content_at) = leb128(rest, 1)?;
        let end = content_at.checked_add(length).filter(|end| *end <= rest.len());
        let (whole, after) = rest.split_at(end.context("the wasm file ends too early")?);
        found.push(Section { kind: *kind, content: &whole[content_at..], whole });
        rest = after;
    }
    Ok(found)
}

/// A text with its length before it; `at` is then behind it.
pub fn string<'a>(bytes: &'a [u8], at: &mut usize) -> Result<&'a [u8]> {
    let (length, start) = leb128(bytes, *at)?;
    *at = start.saturating_add(length);
    bytes.get(start..*at).context("the wasm file ends too early")
}

/// A number as `leb128` reads it.
pub fn encoded(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// An unsigned number of at most 32 bits at `at`, and where it ends.
pub fn leb128(bytes: &[u8], at: usize) -> Result<(usize, usize)> {
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
    use super::{HEADER, encoded, leb128, with_imports, without_names};

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

    #[test]
    fn imports_get_other_names() {
        let import = |name: &str| {
            let sizes = (name.len() as u8, name.len() as u8 + 7);
            [&[2, sizes.1, 1, 2], b"./".as_slice(), &[sizes.0], name.as_bytes(), &[0, 5]].concat()
        };
        let code = b"\x0a\x02xy";
        let whole = file(&[&import("long_name"), code]);
        let renamed = with_imports(&whole, |name| Ok(name[..1].to_owned())).unwrap();
        assert_eq!(renamed, file(&[&import("l"), code]));
        assert!(with_imports(&whole, |name| anyhow::bail!("{name}")).is_err());
        let memory = b"\x02\x07\x01\x01m\x01n\x02\x00";
        assert!(with_imports(&file(&[memory]), |name| Ok(name.to_owned())).is_err());
        for value in [0, 127, 128, 70_000] {
            let bytes = encoded(value);
            assert_eq!(leb128(&bytes, 0).unwrap(), (value, bytes.len()));
        }
    }
}
