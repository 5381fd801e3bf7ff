//! The rules that give a kernel name its category: first match wins.
//!
//! To teach the catalog a kernel, add a row, or a pattern to a row, with an example; the tests below
//! demand that every example hits its own row. Order is meaning: a row may rely on everything above it
//! having had its chance.

mod data;
mod dense;
mod device;
mod experts;
mod pointwise;
mod sequence;
mod training;
mod weak;

use std::sync::LazyLock;

use crate::Category;
use crate::pattern::{PatternSet, find};

/// What a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The head only ([`crate::head`]).
    Head,
    /// The head and its template arguments. Needed where the work hides in an argument
    /// (`elementwise_kernel<...silu_kernel...>`), dangerous everywhere else.
    Name,
}

/// One row.
pub(crate) struct Rule {
    /// Names the rule in reports and tests; `category.what`.
    pub id: &'static str,
    /// What a match means.
    pub category: Category,
    /// What the patterns see.
    pub scope: Scope,
    /// Patterns of [`crate::pattern`], any of which suffices, each followed by a blank: one string takes
    /// a third of the room that a list of strings takes in the download.
    patterns: &'static str,
    /// Names that must hit this row and no earlier one. Test builds only: a name is longer than the
    /// pattern that finds it, and the page is a download.
    #[cfg(test)]
    pub examples: &'static [&'static str],
    /// Where the names come from. Test builds only.
    #[cfg(test)]
    pub source: &'static str,
}

impl Rule {
    /// The patterns, any of which suffices.
    fn any(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.patterns.split_terminator(' ')
    }
}

/// Declares a table of rows; `examples` and `source` stay out of shipped builds.
macro_rules! rules {
    ($table:ident: $({
        id: $id:literal, category: $category:ident, scope: $scope:ident,
        any: [$($pattern:literal),* $(,)?],
        examples: [$($example:literal),* $(,)?],
        source: $source:literal $(,)?
    })*) => {
        pub(super) const $table: &[crate::rules::Rule] = &[$(crate::rules::Rule {
            id: $id,
            category: crate::Category::$category,
            scope: crate::rules::Scope::$scope,
            patterns: concat!($($pattern, " "),*),
            #[cfg(test)]
            examples: &[$($example),*],
            #[cfg(test)]
            source: $source,
        }),*];
    };
}
pub(crate) use rules;

/// All rows in order of precedence.
fn all() -> impl Iterator<Item = &'static Rule> + Clone {
    [
        device::FIRST,
        sequence::SERVING,
        sequence::ATTENTION,
        experts::EXPERTS,
        training::TRAINING,
        dense::DENSE,
        pointwise::POINTWISE,
        data::DATA,
        pointwise::LAST,
        weak::WEAK,
    ]
    .into_iter()
    .flatten()
}

struct Index {
    rows: Vec<&'static Rule>,
    head: PatternSet,
    name: PatternSet,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let patterns = |scope| {
        (0..)
            .zip(all())
            .filter(move |(_, rule)| rule.scope == scope)
            .flat_map(|(row, rule)| rule.any().map(move |pattern| (row, pattern)))
    };
    Index {
        rows: all().collect(),
        head: PatternSet::new(patterns(Scope::Head)),
        name: PatternSet::new(patterns(Scope::Name)),
    }
});

/// Names of libraries that contain names of work: FBGEMM's embedding kernels are no GEMM, and not every kernel in a
/// namespace `grouped_gemm` multiplies groups.
const LIBRARY_WORDS: &[&str] =
    &["fbgemm_gpu::", "fbgemm::", "deep_gemm", "grouped_gemm::", "transformer_engine::"];

/// The first row that matches. Both texts are lower case.
#[inline(never)]
pub(crate) fn first(head: &str, name: &str) -> Option<&'static Rule> {
    let index = &*INDEX;
    let head = without_library_words(head);
    let name = without_library_words(name);
    let by_head = index.head.first(&head, u16::MAX);
    let by_name = index.name.first(&name, by_head.unwrap_or(u16::MAX));
    by_name.or(by_head).map(|row| index.rows[usize::from(row)])
}

fn without_library_words(text: &str) -> std::borrow::Cow<'_, str> {
    let mut text = std::borrow::Cow::Borrowed(text);
    for word in LIBRARY_WORDS {
        if find(&text, word).is_some() {
            text = text.replace(word, "").into();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Platform, RawKind, classify};

    #[test]
    fn every_example_hits_its_own_row() {
        let mut wrong = Vec::new();
        for rule in all() {
            assert!(!rule.examples.is_empty(), "{} has no example", rule.id);
            assert!(!rule.source.is_empty(), "{} has no source", rule.id);
            for example in rule.examples {
                let class = classify(RawKind::Kernel, example, Platform::Unknown);
                if class.rule != rule.id {
                    wrong.push(format!("{example}: expected {}, got {}", rule.id, class.rule));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn ids_are_unique_and_start_with_their_category() {
        let mut ids: Vec<_> = all().map(|rule| rule.id).collect();
        for rule in all() {
            let prefix = format!("{}.", rule.category.id());
            assert!(rule.id.starts_with(&prefix), "{}", rule.id);
        }
        let n = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(n, ids.len());
    }

    #[test]
    fn patterns_are_lower_case_and_indexable() {
        for (rule, pattern) in all().flat_map(|rule| rule.any().map(move |p| (rule, p))) {
            assert_eq!(pattern, pattern.to_ascii_lowercase(), "{}", rule.id);
            assert!(crate::pattern::opening(pattern).is_some(), "{}: {pattern}", rule.id);
        }
    }
}
