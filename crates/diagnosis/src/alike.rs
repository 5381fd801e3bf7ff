//! Figures that several devices have, said once: where their sentences differ in numbers alone, each number becomes a range.

use crate::Finding;
use crate::devices::{of_several, title};

/// Stands for the device in a sentence.
const DEVICE: char = '\u{0}';
/// Stands for a number.
const NUMBER: char = '\u{1}';

/// A number of a sentence.
#[derive(Clone, Debug)]
struct Number {
    /// As it is printed, with its unit.
    text: String,
    /// In the smallest unit, times a million.
    value: i128,
    unit: &'static str,
}

/// A sentence with places for its numbers.
struct Sentence {
    frame: String,
    numbers: Vec<Number>,
}

/// Units that numbers of one place may differ in, and their size in the first one.
const UNITS: [(&str, i128); 5] =
    [(" ns", 1), (" µs", 1_000), (" ms", 1_000_000), (" s", 1_000_000_000), ("%", 1)];
/// Decimals of a value.
const DECIMALS: usize = 6;

/// Words before a number that is no figure.
const IDS: [&str; 4] = ["device ", "devices ", "rank ", "gpu "];

impl Sentence {
    /// `None` where the text has the signs that stand for device and number.
    fn of(text: &str, device: &str) -> Option<Self> {
        if text.contains([DEVICE, NUMBER]) {
            return None;
        }
        let text = with_device(text, device);
        let (mut frame, mut numbers) = (String::with_capacity(text.len()), Vec::new());
        let mut rest = text.as_str();
        let mut before = None;
        while let Some(first) = rest.chars().next() {
            // (A digit in a name is a part of the name, as is a line of a file.)
            let is_in_name = before
                .is_some_and(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | ':'));
            let number = if is_in_name || is_id(&frame) { None } else { Number::at(rest) };
            match number {
                Some((number, n)) => {
                    // (A share of another unit has another sentence.)
                    frame.push(NUMBER);
                    frame.push_str(if number.unit == "%" { "%" } else { "" });
                    before = rest[..n].chars().last();
                    rest = &rest[n..];
                    numbers.push(number);
                }
                None => {
                    frame.push(first);
                    before = Some(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        Some(Self { frame, numbers })
    }
}

/// Whether what follows is the number of a device or a rank.
fn is_id(frame: &str) -> bool {
    let ends = |word: &str| {
        let from = frame.len().checked_sub(word.len());
        from.and_then(|from| frame.get(from..)).is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    IDS.iter().any(|word| ends(word))
}

/// The text with [`DEVICE`] in place of `Device 1`, and not of `Device 12`.
fn with_device(text: &str, device: &str) -> String {
    let title = format!("Device {device}");
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&title) {
        let after = &rest[at + title.len()..];
        found.push_str(&rest[..at]);
        match after.starts_with(|c: char| c.is_alphanumeric()) {
            true => found.push_str(&title),
            false => found.push(DEVICE),
        }
        rest = after;
    }
    found + rest
}

impl Number {
    /// The number that `text` begins with, and its length.
    fn at(text: &str) -> Option<(Self, usize)> {
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | report::units::GROUP);
        let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
        let digits = text[..end].trim_end_matches(['.', report::units::GROUP]);
        digits.chars().next().filter(char::is_ascii_digit)?;
        let after = &text[digits.len()..];
        let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if !is_end(after) {
            return None;
        }
        let unit = UNITS.iter().find(|(unit, _)| after.strip_prefix(unit).is_some_and(is_end));
        let (unit, size) = unit.copied().unwrap_or(("", 1));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let place = |value: i128, c: char| {
            c.to_digit(10)
                .map_or(value, |digit| value.saturating_mul(10).saturating_add(i128::from(digit)))
        };
        let value = whole.chars().fold(0, place);
        let padded = part.chars().chain(std::iter::repeat('0')).take(DECIMALS);
        let value = padded.fold(value, place).saturating_mul(size);
        let n = digits.len() + unit.len();
        Some((Self { text: text[..n].to_owned(), value, unit }, n))
    }
}

/// One sentence of all: `each of devices 2 and 3` for the device, `36 to 51%` for a number that differs.
fn merged(sentences: &[&Sentence], devices: &str) -> String {
    let Some(first) = sentences.first() else { return String::new() };
    let mut text = String::with_capacity(2 * first.frame.len());
    let mut nth = 0;
    for c in first.frame.chars() {
        match c {
            DEVICE if text.is_empty() => text.push_str(&format!("Each of {devices}")),
            DEVICE => text.push_str(&format!("each of {devices}")),
            NUMBER => {
                let numbers = || sentences.iter().filter_map(|one| one.numbers.get(nth));
                let least = numbers().min_by_key(|number| number.value);
                let most = numbers().max_by_key(|number| number.value);
                if let (Some(least), Some(most)) = (least, most) {
                    text.push_str(&range(least, most));
                }
                nth += 1;
            }
            // (The sign is a part of the number.)
            '%' if text.ends_with('%') => {}
            c => text.push(c),
        }
    }
    text
}

fn range(least: &Number, most: &Number) -> String {
    if least.text == most.text {
        return least.text.clone();
    }
    let from = match least.unit == most.unit {
        true => least.text.strip_suffix(least.unit).unwrap_or(&least.text),
        false => &least.text,
    };
    format!("{from} to {}", most.text)
}

/// Each kind once. Findings without a device, those of a single one, and those that differ in words stay as they are.
pub(crate) fn in_ranges(all: Vec<Finding>) -> Vec<Finding> {
    let parts: Vec<Option<(Sentence, Sentence)>> = all
        .iter()
        .map(|one| {
            // (A rank with several devices is none of them.)
            let device = one.device.as_deref().filter(|device| !device.contains(", "))?;
            Some((Sentence::of(&one.observation, device)?, Sentence::of(&one.meaning, device)?))
        })
        .collect();
    let key = |(part, one): (&Option<(Sentence, Sentence)>, &Finding)| {
        let (observation, meaning) = part.as_ref()?;
        Some((one.rule, one.verdict, observation.frame.clone(), meaning.frame.clone()))
    };
    let keys: Vec<_> = parts.iter().zip(&all).map(key).collect();
    let mut kept: Vec<Option<Finding>> = all.iter().cloned().map(Some).collect();
    for members in of_several(&all, &keys) {
        let Some(first) = members.first() else { continue };
        let names: Vec<&str> = members.iter().filter_map(|at| all[*at].device.as_deref()).collect();
        let devices = title(&names).replacen('D', "d", 1);
        let of = |which: fn(&(Sentence, Sentence)) -> &Sentence| {
            let sentences: Vec<&Sentence> =
                members.iter().filter_map(|at| parts[*at].as_ref().map(which)).collect();
            merged(&sentences, &devices)
        };
        let told = Finding {
            observation: of(|(observation, _)| observation),
            meaning: of(|(_, meaning)| meaning),
            ..all[*first].clone()
        };
        for at in &members {
            kept[*at] = None;
        }
        kept[*first] = Some(told);
    }
    kept.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;

    fn told(all: &[(&str, &str)]) -> Vec<String> {
        let findings = all
            .iter()
            .map(|(device, text)| Finding::fact(Rule::Busy, "busy", (*text).to_owned()).on(device));
        in_ranges(findings.collect()).into_iter().map(|one| one.observation).collect()
    }

    #[test]
    fn numbers_become_ranges_over_their_units() {
        let all = [
            ("2", "Device 2 is busy 65.2% of the span (91.2 ms of 1.40 s)."),
            ("3", "Device 3 is busy 35.7% of the span (9.12 ms of 1.40 s)."),
            ("4", "Device 4 is busy 50.0% of the span (847 µs of 1.40 s)."),
        ];
        assert_eq!(
            told(&all),
            [
                "Each of devices 2, 3 and 4 is busy 35.7 to 65.2% of the span (847 µs to 91.2 ms of 1.40 s)."
            ]
        );
    }

    #[test]
    fn the_device_may_stand_in_the_sentence_and_digits_in_a_name() {
        let all = [
            ("0", "The CPU waits in 1\u{2009}031 calls; Device 0 is idle. k_8 in fp16 (f3.py:12)."),
            ("1", "The CPU waits in 25 calls; Device 1 is idle. k_8 in fp16 (f3.py:12)."),
        ];
        assert_eq!(
            told(&all),
            [
                "The CPU waits in 25 to 1\u{2009}031 calls; each of devices 0 and 1 is idle. k_8 in fp16 (f3.py:12)."
            ]
        );
    }

    #[test]
    fn other_words_other_names_and_one_device_stay() {
        let all = [
            ("0", "Device 0 runs gemm for 3 ms."),
            ("1", "Device 1 runs gemm_2 for 3 ms."),
            ("1", "Device 1 waits."),
        ];
        assert_eq!(told(&all), all.map(|(_, text)| text.to_owned()));
        let twice = [
            ("0", "Device 0 waits 3 ms."),
            ("1", "Device 1 waits 3 ms."),
            ("0", "Device 0 waits 4 ms."),
        ];
        assert_eq!(told(&twice), twice.map(|(_, text)| text.to_owned()));
    }

    #[test]
    fn lines_of_files_and_numbers_of_devices_are_no_figures() {
        for all in [
            [
                ("0", "Device 0 copies in train.py:12 f."),
                ("1", "Device 1 copies in train.py:40 f."),
            ],
            [("0", "Device 0 waits for device 3."), ("1", "Device 1 waits for device 2.")],
            [("0, 1", "Devices 0 and 1: 3 reads."), ("2, 3", "Devices 2 and 3: 3 reads.")],
            [
                ("1", "Device 1, not Device 12, waits 3 ms."),
                ("2", "Device 2, not Device 13, waits 3 ms."),
            ],
            [("0", "Device 0 runs \u{1}."), ("1", "Device 1 runs \u{1}.")],
        ] {
            assert_eq!(told(&all), all.map(|(_, text)| text.to_owned()));
        }
    }
}
