//! Another order of the functions of a program, for a smaller download. gzip finds a repetition only within the last 32 kB. Copies
//! that the compiler made of one generic function are alike, but the linker's scripts write functions by size: copies lie far apart.
//! Here each function follows those that share most of its bytes.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use wasmparser::{BinaryReader, FunctionBody, Operator};

use crate::wasm::{HEADER, encoded, leb128, sections, string};

const IMPORT: u8 = 2;
const FUNCTION: u8 = 3;
const GLOBAL: u8 = 6;
const EXPORT: u8 = 7;
const START: u8 = 8;
const ELEMENT: u8 = 9;
const CODE: u8 = 10;

/// How far back gzip looks.
const REACH: usize = 32_000;
/// Functions are compared by runs of so many bytes, of which one in eight counts.
const RUN: usize = 6;
/// A run that more functions share says nothing of two of them.
const TOO_COMMON: usize = 60;

/// The same program with its functions in the order in which they compress best.
pub fn reordered(wasm: &[u8]) -> Result<Vec<u8>> {
    let all = sections(wasm)?;
    let section =
        |kind| all.iter().find(|section| section.kind == kind).map(|section| section.content);
    let (Some(types), Some(code)) = (section(FUNCTION), section(CODE)) else {
        return Ok(wasm.to_vec());
    };
    let n_imports = section(IMPORT).map_or(Ok(0), |content| leb128(content, 0).map(|(n, _)| n))?;
    let bodies = bodies(code)?;
    let order = order(&bodies);
    // By the old number of a function, its new one. (Imports come first and stay.)
    let mut numbers: Vec<usize> = (0..n_imports + bodies.len()).collect();
    for (place, from) in order.iter().enumerate() {
        numbers[n_imports + from] = n_imports + place;
    }
    let numbers = Numbers(numbers);
    let mut moved = HEADER.to_vec();
    for section in &all {
        let content = match section.kind {
            FUNCTION => functions(types, &order)?,
            GLOBAL => {
                // No compiler of ours writes such an initial value.
                ensure!(is_plain(section.content)?, "a global is a function");
                section.content.to_vec()
            }
            EXPORT => numbers.exports(section.content)?,
            START => encoded(numbers.of(leb128(section.content, 0)?.0)?),
            ELEMENT => numbers.elements(section.content)?,
            CODE => numbers.code(&bodies, &order)?,
            _ => {
                moved.extend_from_slice(section.whole);
                continue;
            }
        };
        moved.push(section.kind);
        moved.extend(encoded(content.len()));
        moved.extend(content);
    }
    Ok(moved)
}

/// Whether no global begins as a function.
fn is_plain(content: &[u8]) -> Result<bool> {
    for global in wasmparser::GlobalSectionReader::new(BinaryReader::new(content, 0))? {
        for op in global?.init_expr.get_operators_reader() {
            if matches!(op?, Operator::RefFunc { .. }) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The bodies of a code section, without their lengths.
fn bodies(code: &[u8]) -> Result<Vec<&[u8]>> {
    let (n, mut at) = leb128(code, 0)?;
    (0..n).map(|_| string(code, &mut at)).collect()
}

/// The types of functions in another order.
fn functions(types: &[u8], order: &[usize]) -> Result<Vec<u8>> {
    let (n, mut at) = leb128(types, 0)?;
    ensure!(n == order.len(), "{n} types for {} functions", order.len());
    let mut of_types = Vec::new();
    for _ in 0..n {
        let (of_type, end) = leb128(types, at)?;
        of_types.push(of_type);
        at = end;
    }
    ensure!(at == types.len(), "the types of functions go on");
    let mut moved = encoded(n);
    order.iter().for_each(|from| moved.extend(encoded(of_types[*from])));
    Ok(moved)
}

/// The new numbers of functions.
struct Numbers(Vec<usize>);

impl Numbers {
    fn of(&self, number: usize) -> Result<usize> {
        self.0.get(number).copied().with_context(|| format!("there is no function {number}"))
    }

    fn exports(&self, content: &[u8]) -> Result<Vec<u8>> {
        let (n, mut at) = leb128(content, 0)?;
        let mut moved = encoded(n);
        for _ in 0..n {
            let name = string(content, &mut at)?;
            let kind = *content.get(at).context("an export has no kind")?;
            let (number, end) = leb128(content, at + 1)?;
            at = end;
            moved.extend(encoded(name.len()));
            moved.extend_from_slice(name);
            moved.push(kind);
            moved.extend(encoded(if kind == 0 { self.of(number)? } else { number }));
        }
        Ok(moved)
    }

    /// The table of functions that are called by address. Its places stay, so no pointer in the data changes.
    fn elements(&self, content: &[u8]) -> Result<Vec<u8>> {
        let (n, mut at) = leb128(content, 0)?;
        let mut moved = encoded(n);
        for _ in 0..n {
            let (flags, offset_at) = leb128(content, at)?;
            ensure!(flags == 0, "a table of functions is of another form");
            // `i32.const`, the offset, `end`
            ensure!(content.get(offset_at) == Some(&0x41), "the offset of a table is no constant");
            let (_, end) = leb128(content, offset_at + 1)?;
            ensure!(content.get(end) == Some(&0x0b), "the offset of a table is no constant");
            moved.extend_from_slice(&content[at..=end]);
            let (n_functions, next) = leb128(content, end + 1)?;
            at = next;
            moved.extend(encoded(n_functions));
            for _ in 0..n_functions {
                let (number, next) = leb128(content, at)?;
                at = next;
                moved.extend(encoded(self.of(number)?));
            }
        }
        Ok(moved)
    }

    fn code(&self, bodies: &[&[u8]], order: &[usize]) -> Result<Vec<u8>> {
        let mut moved = encoded(order.len());
        for from in order {
            let body = self.body(bodies[*from])?;
            moved.extend(encoded(body.len()));
            moved.extend(body);
        }
        Ok(moved)
    }

    /// A body that names other functions by their new numbers.
    fn body(&self, body: &[u8]) -> Result<Vec<u8>> {
        let mut moved = Vec::with_capacity(body.len());
        let mut copied = 0;
        let mut reader = FunctionBody::new(BinaryReader::new(body, 0)).get_operators_reader()?;
        while !reader.eof() {
            let (op, at) = reader.read_with_offset()?;
            let number = match op {
                Operator::Call { function_index }
                | Operator::ReturnCall { function_index }
                | Operator::RefFunc { function_index } => function_index as usize,
                _ => continue,
            };
            // The operator is one byte, and the number is all that follows.
            moved.extend_from_slice(&body[copied..=at]);
            moved.extend(encoded(self.of(number)?));
            copied = reader.original_position();
        }
        moved.extend_from_slice(&body[copied..]);
        Ok(moved)
    }
}

/// In which order to write the bodies: each after those within reach that share most runs of bytes with it, for its length. A body
/// that nothing before it resembles is the first that is left.
fn order(bodies: &[&[u8]]) -> Vec<usize> {
    let runs: Vec<Vec<u64>> = bodies.iter().map(|body| runs(body)).collect();
    let mut owners: HashMap<u64, Vec<usize>> = HashMap::new();
    for (body, runs) in runs.iter().enumerate() {
        runs.iter().for_each(|run| owners.entry(*run).or_default().push(body));
    }
    let shared = |body: usize| {
        let owners = runs[body].iter().filter_map(|run| owners.get(run));
        owners.filter(|owners| owners.len() <= TOO_COMMON).flatten().copied()
    };
    // How many runs each body shares with those within reach.
    let mut n_shared = vec![0_u64; bodies.len()];
    let mut left: Vec<usize> = (0..bodies.len()).collect();
    let (mut order, mut first_near, mut near_bytes) = (Vec::new(), 0, 0);
    while !left.is_empty() {
        let fit =
            |body: usize| n_shared[body] * n_shared[body] * 1_000 / (runs[body].len() as u64 + 8);
        let mut best = 0;
        for (place, body) in left.iter().enumerate() {
            if fit(*body) > fit(left[best]) {
                best = place;
            }
        }
        let body = left.remove(best);
        order.push(body);
        near_bytes += bodies[body].len();
        shared(body).for_each(|other| n_shared[other] += 1);
        while near_bytes > REACH && first_near + 1 < order.len() {
            let far = order[first_near];
            near_bytes -= bodies[far].len();
            shared(far).for_each(|other| n_shared[other] -= 1);
            first_near += 1;
        }
    }
    order
}

/// Numbers of some runs of bytes, each once: the same runs in every body.
fn runs(body: &[u8]) -> Vec<u64> {
    let numbers = body.windows(RUN).map(|run| {
        let start = 0xcbf2_9ce4_8422_2325_u64;
        run.iter().fold(start, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    });
    let mut some: Vec<u64> = numbers.filter(|number| number >> 61 == 0).collect();
    some.sort_unstable();
    some.dedup();
    some
}

#[cfg(test)]
mod tests {
    use super::{order, reordered};
    use crate::wasm::{HEADER, encoded};

    fn section(kind: u8, content: &[u8]) -> Vec<u8> {
        [&[kind][..], &encoded(content.len()), content].concat()
    }

    /// A long body of its own, followed by `end`.
    fn body(seed: u32, end: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0];
        for n in 0..64_u32 {
            // `i32.const`, `drop`
            bytes.push(0x41);
            bytes.extend(encoded(
                (seed.wrapping_mul(2_654_435_761).wrapping_add(n * n * 977) & 0x0fff_ffff) as usize,
            ));
            bytes.push(0x1a);
        }
        bytes.extend_from_slice(end);
        bytes.push(0x0b);
        bytes
    }

    fn program(bodies: &[&[u8]], types: &[u8], exported: u8, elements: &[u8]) -> Vec<u8> {
        let with_lengths: Vec<u8> =
            bodies.iter().flat_map(|body| [encoded(body.len()), body.to_vec()].concat()).collect();
        let n = bodies.len() as u8;
        [
            HEADER.to_vec(),
            section(2, b"\x01\x01m\x01f\x00\x00"),
            section(3, &[&[n], types].concat()),
            section(7, &[1, 1, b'e', 0, exported]),
            section(9, &[&[1, 0, 0x41, 1, 0x0b, elements.len() as u8], elements].concat()),
            section(10, &[&[n][..], &with_lengths].concat()),
        ]
        .concat()
    }

    #[test]
    fn like_follows_like_and_every_number_with_it() {
        // 1 and 3 are alike; 0 is the import. Calls: 1 -> 2, 2 -> 3, 3 -> 0.
        let (a, b, c) = (body(1, b"\x10\x02"), body(2, b"\x10\x03"), body(1, b"\x10\x00"));
        let whole = program(&[&a, &b, &c], &[4, 5, 6], 2, &[1, 2, 3]);
        assert_eq!(order(&[&a, &b, &c]), [0, 2, 1]);
        let (a, b) = (body(1, b"\x10\x03"), body(2, b"\x10\x02"));
        let expected = program(&[&a, &c, &b], &[4, 6, 5], 3, &[1, 3, 2]);
        assert_eq!(reordered(&whole).unwrap(), expected);
        assert_eq!(reordered(&expected).unwrap(), expected, "once is enough");
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let a = body(1, b"\x10\x09");
        assert!(reordered(&program(&[&a], &[4], 1, &[1])).is_err(), "a call of nothing");
        let a = body(1, b"");
        assert!(reordered(&program(&[&a], &[4], 9, &[1])).is_err(), "an export of nothing");
        assert!(reordered(&program(&[&a], &[4, 4], 1, &[1])).is_err(), "a type too many");
    }
}
