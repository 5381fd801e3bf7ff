//! Which modules are one row.

use std::collections::BTreeMap;

use host::Slices;
use host::modules::Tree;

/// A row: the row around it, and its label.
struct Node {
    around: Option<usize>,
    name: String,
    inside: Vec<usize>,
}

/// The rows of a tree of modules.
pub(super) struct Folded {
    nodes: Vec<Node>,
    /// By path: its row.
    row_of: Vec<usize>,
    /// The outermost rows.
    outermost: Vec<usize>,
}

impl Folded {
    pub(super) fn of(slices: &Slices<'_>, tree: &Tree) -> Self {
        let n = tree.n_paths();
        let mut inside: Vec<Vec<usize>> = vec![Vec::new(); n];
        let mut outer: Vec<usize> = Vec::new();
        for path in 0..n {
            match tree.around(path) {
                Some(around) => inside[around].push(path),
                None => outer.push(path),
            }
        }
        let classes: Vec<&str> = (0..n).map(|path| class(tree.name(slices, path))).collect();
        let shapes = shapes(&classes, &inside);
        let mut labels: Vec<String> = vec![String::new(); n];
        label(&outer, &classes, &inside, &shapes, &mut labels);
        for own in &inside {
            label(own, &classes, &inside, &shapes, &mut labels);
        }
        let mut found =
            Self { nodes: Vec::new(), row_of: Vec::with_capacity(n), outermost: Vec::new() };
        let mut known: BTreeMap<(Option<usize>, String), usize> = BTreeMap::new();
        // (A path has a greater number than the one around it.)
        for (path, name) in labels.into_iter().enumerate() {
            let around = tree.around(path).and_then(|around| found.row_of.get(around).copied());
            let next = found.nodes.len();
            let row = *known.entry((around, name.clone())).or_insert(next);
            if row == next {
                found.nodes.push(Node { around, name, inside: Vec::new() });
                match around {
                    Some(around) => found.nodes[around].inside.push(row),
                    None => found.outermost.push(row),
                }
            }
            found.row_of.push(row);
        }
        found
    }

    pub(super) fn row_of(&self, path: usize) -> usize {
        self.row_of.get(path).copied().unwrap_or(0)
    }

    pub(super) fn name(&self, row: usize) -> &str {
        self.nodes.get(row).map_or("", |node| &node.name)
    }

    fn chain(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(row), |row| self.nodes.get(*row)?.around)
    }

    pub(super) fn depth(&self, row: usize) -> usize {
        self.chain(row).count() - 1
    }

    pub(super) fn path(&self, row: usize) -> String {
        let mut names: Vec<&str> = self.chain(row).map(|row| self.name(row)).collect();
        names.reverse();
        names.join("/")
    }

    /// Each row before those inside it.
    pub(super) fn in_order(&self) -> Vec<usize> {
        let mut out = Vec::with_capacity(self.nodes.len());
        let mut open: Vec<usize> = self.outermost.iter().rev().copied().collect();
        while let Some(row) = open.pop() {
            out.push(row);
            if let Some(node) = self.nodes.get(row) {
                open.extend(node.inside.iter().rev());
            }
        }
        out
    }
}

/// `Linear` of `Linear_3`.
fn class(name: &str) -> &str {
    let cut = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    match cut.strip_suffix('_') {
        Some(class) if cut.len() < name.len() => class,
        _ => name,
    }
}

/// By path: a number that paths of one class share whose modules inside are equal, too.
fn shapes(classes: &[&str], inside: &[Vec<usize>]) -> Vec<usize> {
    let mut known: BTreeMap<(String, Vec<usize>), usize> = BTreeMap::new();
    let mut shapes = vec![0; classes.len()];
    for path in (0..classes.len()).rev() {
        let own: Vec<usize> = inside[path].iter().map(|inner| shapes[*inner]).collect();
        let next = known.len();
        shapes[path] = *known.entry((classes[path].to_owned(), own)).or_insert(next);
    }
    shapes
}

/// Labels siblings: those with modules inside by class, and by shape where one class has several; the others by their place.
fn label(
    siblings: &[usize],
    classes: &[&str],
    inside: &[Vec<usize>],
    shapes: &[usize],
    labels: &mut [String],
) {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for path in siblings {
        let group = groups.entry(classes[*path]).or_default();
        // Of one with modules inside, its like is the same group.
        let is_new = inside[*path].is_empty() || !group.contains(&shapes[*path]);
        if is_new {
            group.push(if inside[*path].is_empty() { usize::MAX - *path } else { shapes[*path] });
        }
    }
    for path in siblings {
        let key = if inside[*path].is_empty() { usize::MAX - *path } else { shapes[*path] };
        let group = &groups[classes[*path]];
        let place = group.iter().position(|of| *of == key).unwrap_or(0);
        labels[*path] = match group.len() {
            0 | 1 => classes[*path].to_owned(),
            _ => format!("{} #{}", classes[*path], place + 1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_a_name_without_its_number() {
        for (name, of) in [("Linear_12", "Linear"), ("Conv2d", "Conv2d"), ("Block2_3", "Block2")] {
            assert_eq!(class(name), of);
        }
    }
}
