//! The call site that holds most of something, or the function whose lines do together.

use crate::amounts::size;

/// Lines of a function that are summed.
const MOST_LINES: usize = 10;

/// Names that several classes of a file have: only lines that are near each other are of one function.
const SHARED: &[&str] = &["forward", "backward", "step", "__init__", "__call__"];

/// The distance of lines up to which they are near.
const NEAR: u32 = 10;

/// A call site, or a function with several of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    /// The call site, or file and function.
    pub(crate) name: String,
    /// Lines of it that allocated; more than one of a function.
    pub(crate) n_lines: usize,
    pub(crate) bytes: i64,
}

impl Leader {
    /// Its name, and how many lines of it are summed.
    #[inline(never)]
    pub(crate) fn text(&self) -> String {
        self.name.clone() + &lines_of(self.n_lines)
    }

    /// What it has of all bytes of a class, as a part of a sentence: `of_them` follows a part of them.
    #[inline(never)]
    pub(crate) fn part(&self, all: i64, of_them: &str) -> String {
        let part = if self.bytes == all { "all".to_owned() } else { size(self.bytes) + of_them };
        format!("{part} from {}", self.text())
    }
}

/// How many lines of a function are summed, if several are.
#[inline(never)]
pub(crate) fn lines_of(n_lines: usize) -> String {
    if n_lines > 1 { format!(" ({n_lines} of its lines together)") } else { String::new() }
}

/// File, line and function of a call site; `None` for one of another form.
#[inline(never)]
fn parts(site: &str) -> Option<(&str, u32, &str)> {
    let (rest, function) = site.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    // (A whole script is no function.)
    (function != "<module>").then_some((file, line.parse().ok()?, function))
}

/// File and function of a call site; `None` for one of another form.
pub(crate) fn function_of(site: &str) -> Option<String> {
    parts(site).map(|(file, _, function)| format!("{file}:{function}"))
}

/// Whether two call sites are lines of one function.
#[inline(never)]
pub(crate) fn is_same_function(one: &str, other: &str) -> bool {
    let (Some(one), Some(other)) = (parts(one), parts(other)) else { return false };
    (one.0, one.2) == (other.0, other.2)
        && (!SHARED.contains(&one.2) || one.1.abs_diff(other.1) <= NEAR)
}

/// The first of call sites in the order of their bytes, or a function where that has much more.
#[inline(never)]
pub(crate) fn leader(sites: &mut dyn Iterator<Item = (&str, i64)>) -> Option<Leader> {
    let sites: Vec<(&str, i64)> = sites.collect();
    let first = sites.first()?;
    let mut most = Leader { name: first.0.to_owned(), n_lines: 1, bytes: first.1 };
    let mut least = first.1.saturating_mul(3) / 2;
    // (Of few lines that have more together the largest one is among the first.)
    for line in sites.iter().take(MOST_LINES) {
        let own = sites.iter().filter(|row| is_same_function(row.0, line.0));
        let (n_lines, bytes) =
            own.fold((0, 0_i64), |sum, row| (sum.0 + 1, sum.1.saturating_add(row.1)));
        if bytes > least
            && n_lines <= MOST_LINES
            && let Some(name) = function_of(line.0)
        {
            (most, least) = (Leader { name, n_lines, bytes }, bytes);
        }
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_one_name_are_one_function_only_where_they_are_near() {
        for (one, other, is_one) in [
            ("/a.py:5:softmax", "/a.py:70:softmax", true),
            ("/a.py:5:forward", "/a.py:12:forward", true),
            ("/a.py:5:forward", "/a.py:70:forward", false),
            ("/a.py:5:softmax", "/b.py:5:softmax", false),
            ("/a.py:5:softmax", "/a.py:5:attention", false),
            ("/a.py:5:<module>", "/a.py:6:<module>", false),
            ("<autograd> A", "<autograd> A", false),
        ] {
            assert_eq!(is_same_function(one, other), is_one, "{one} {other}");
        }
    }

    #[test]
    fn a_function_leads_where_its_lines_have_much_more_than_the_first() {
        let sites = [("/a.py:1:f", 48), ("/a.py:2:f", 48), ("/b.py:1:g", 40), ("/a.py:3:f", 4)];
        let found = leader(&mut sites.into_iter()).unwrap();
        assert_eq!(found.text(), "/a.py:f (3 of its lines together)");
        assert_eq!(found.bytes, 100);
        let found =
            leader(&mut [("/a.py:1:f", 48), ("/b.py:1:g", 40), ("/a.py:3:f", 4)].into_iter())
                .unwrap();
        assert_eq!((found.text(), found.bytes), ("/a.py:1:f".to_owned(), 48));
        let found =
            leader(&mut [("/b.py:1:g", 50), ("/a.py:1:f", 48), ("/a.py:2:f", 48)].into_iter())
                .unwrap();
        assert_eq!(found.bytes, 96);
        assert_eq!(leader(&mut [].into_iter()), None);
    }
}
