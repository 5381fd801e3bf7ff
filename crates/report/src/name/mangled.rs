//! Names that the profiler left mangled, usual on ROCm.

/// The path of an Itanium-mangled name and its telling template arguments:
/// `_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdI...` reads `ck_tile::kentry<Rmsnorm2dFwd…>`. Numbers and truth values
/// among the arguments follow as far as they fit `max` characters. `None` if the name is not mangled.
pub(super) fn path(name: &str, max: usize) -> Option<String> {
    let mut rest = name.strip_prefix("_Z")?;
    let nested = rest.strip_prefix('N');
    rest = nested.unwrap_or(rest).trim_start_matches(['K', 'V']);
    let mut components = Vec::new();
    loop {
        // A substitution for a namespace: `St` is `std`, `S_` and `S0_` repeat an earlier one.
        if let Some(after) = nested.and(rest.strip_prefix("St")) {
            rest = after;
        }
        let Some((identifier, after)) = identifier(rest) else { break };
        // GCC's and Clang's spellings of an anonymous namespace.
        if !identifier.starts_with("_GLOBAL__N_") && !identifier.starts_with("_INTERNAL_") {
            components.push(identifier);
        }
        rest = after;
        if nested.is_none() {
            break;
        }
    }
    // The outermost namespace names the library; those between say little.
    let mut path = match components.as_slice() {
        [] => return None,
        ["at", "native", .., last] | [last] => (*last).to_owned(),
        [first, .., last] => format!("{first}::{last}"),
    };
    if let Some(arguments) = rest.strip_prefix('I') {
        // Digits stand in types and literals too (`DF16b`, `Li256E`): a class begins after one of these.
        let first = arguments.char_indices().skip(1).find_map(|(at, char)| {
            let before = arguments[..at].chars().next_back();
            let begins = char.is_ascii_digit() && matches!(before, Some('N' | '_' | 'E'));
            begins.then(|| last_of_path(&arguments[at..])).flatten()
        });
        let first = first.filter(|argument| argument.len() > 2);
        // Sizes and switches tell such kernels apart: they get a third of the room.
        let room = (max * 2 / 3).saturating_sub(path.len()).max(12);
        let mut shown: Vec<String> = first
            .iter()
            .map(|argument| format!("{}…", argument.get(..room).unwrap_or(argument)))
            .collect();
        let mut length = path.len() + 2 + shown.iter().map(|text| text.len()).sum::<usize>();
        for value in literals(arguments) {
            length += value.len() + 2;
            if length > max {
                break;
            }
            shown.push(value);
        }
        if !shown.is_empty() {
            path.push_str(&format!("<{}>", shown.join(", ")));
        }
    }
    Some(path)
}

/// The numbers and truth values among template arguments: `Li256E` and `Lb1E` are 256 and true.
fn literals(arguments: &str) -> Vec<String> {
    let value = |(at, _): (usize, &str)| {
        let (kind, rest) = arguments[at + 1..].split_at_checked(1)?;
        let (sign, rest) = rest.strip_prefix('n').map_or(("", rest), |rest| ("-", rest));
        let digits = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
        if digits.is_empty() || !rest[digits.len()..].starts_with('E') {
            return None;
        }
        match kind {
            "b" => Some(if digits == "0" { "false" } else { "true" }.to_owned()),
            "i" | "j" | "l" | "m" | "s" | "t" | "x" | "y" | "a" | "h" | "c" => {
                Some(format!("{sign}{digits}"))
            }
            _ => None,
        }
    };
    arguments.match_indices('L').filter_map(value).collect()
}

/// The last identifier of the qualified name that `text` begins with.
fn last_of_path(text: &str) -> Option<&str> {
    let (mut last, mut rest) = identifier(text)?;
    while let Some((next, after)) = identifier(rest) {
        (last, rest) = (next, after);
    }
    Some(last)
}

/// A length-prefixed identifier and what follows it.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let len: usize = text.get(..digits)?.parse().ok()?;
    let name = text.get(digits..digits.checked_add(len)?)?;
    let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let starts = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    (word && starts).then(|| (name, &text[digits + len..]))
}
