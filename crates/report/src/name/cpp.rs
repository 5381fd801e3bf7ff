//! Demangled C++ names, level by level.

/// Namespaces that say nothing about a kernel: a name in them is known without.
const PLAIN: &[&str] =
    &["at", "c10", "native", "std", "cute", "__1", "detail", "internal", "impl", "at_cuda_detail"];

/// How namespaces begin that libraries name after their version or a hash.
const VERSIONED: &[&str] = &["ROCPRIM_", "CUB_", "THRUST_", "_GLOBAL__N_", "_INTERNAL_", "_V2"];

/// Names that many classes and functions share: the name before them tells which one it is.
const SHARED: &[&str] = &[
    "apply",
    "Arguments",
    "Config",
    "GemmKernel",
    "Impl",
    "Kernel",
    "kernel",
    "Op",
    "operator()",
    "Params",
    "Policy",
    "run",
    "Traits",
    "type",
    "value",
];

/// How deep arguments are followed whatever they are: a name of a file can hold any number of brackets.
const DEEPEST: u32 = 24;

/// How much of the namespaces before a function is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Namespaces {
    All,
    /// The outermost, which names the library.
    Outermost,
    /// The outermost, and arguments in brief.
    Terse,
}

/// Levels of template arguments that are still shown, and how deep the text may still be followed.
#[derive(Clone, Copy)]
struct Depth {
    shown: u32,
    followed: u32,
    /// Leaves out what a reader misses least: PyTorch's wrappers around functors, and types that are repeated.
    is_terse: bool,
}

impl Depth {
    /// One level down. The only argument of a wrapper, as in `gpu_kernel_impl<Functor>`, costs no level.
    fn below(self, n_arguments: usize) -> Self {
        let shown = if n_arguments == 1 { self.shown } else { self.shown.saturating_sub(1) };
        Self { shown, followed: self.followed.saturating_sub(1), ..self }
    }

    fn is_over(self) -> bool {
        self.shown == 0 || self.followed == 0
    }
}

/// A function's name with namespaces and template arguments; parameters, return type and everything only the compiler
/// needs are gone. `depth` levels of template arguments are kept. `None` if `name` is no C++ name.
pub(super) fn function(name: &str, namespaces: Namespaces, depth: u32) -> Option<String> {
    let is_terse = namespaces == Namespaces::Terse;
    of_function(name, namespaces, Depth { shown: depth, followed: DEEPEST, is_terse })
}

/// [`function`] in brief, without as many of its last template arguments as do not fit `max` characters; `None` if no
/// type or functor would stay, only numbers.
pub(super) fn first_arguments(name: &str, depth: u32, max: usize) -> Option<String> {
    let full = function(name, Namespaces::Terse, depth)?;
    let open = full.find('<')?;
    let inside = &full[open + 1..];
    let arguments = split(&inside[..matching(inside)], Separator::Comma);
    let mut shown = full[..=open].to_owned();
    let mut tells = false;
    for argument in arguments {
        // What follows the last argument that fits: `, …>`.
        if shown.chars().count() + argument.chars().count() + 4 > max {
            break;
        }
        shown.push_str(argument);
        shown.push(',');
        tells |= argument.contains('<') || argument.contains('_') || argument.contains('(');
    }
    tells.then(|| format!("{shown} …>"))
}

fn of_function(name: &str, namespaces: Namespaces, depth: Depth) -> Option<String> {
    let end = parameters(name);
    let declaration = &name[..end];
    let path = match last_space(declaration) {
        Some(space) => &declaration[space + 1..],
        None => declaration,
    };
    if end == name.len() && !path.contains('<') && !path.contains("::") {
        return None;
    }
    let components = split(path, Separator::Colons);
    let (last, before) = components.split_last()?;
    let mut before: Vec<&str> =
        before.iter().copied().filter(|component| !is_plain(component)).collect();
    if namespaces != Namespaces::All && !is_shared(last) {
        before.truncate(1);
    }
    let none = Depth { shown: 0, ..depth };
    let mut shown: Vec<String> =
        before.iter().map(|component| self::component(component, none)).collect();
    shown.push(component(last, depth));
    Some(shown.join("::"))
}

/// A type, value or function among template arguments.
fn argument(text: &str, depth: Depth) -> String {
    let text = text.trim();
    // A function as an argument, `&(float ns::f<int>(int))` or `&ns::f`, is told by its name.
    if let Some(inner) = text.strip_prefix("&(") {
        let inner = inner.strip_suffix(')').unwrap_or(inner);
        return of_function(inner, Namespaces::Outermost, depth)
            .unwrap_or_else(|| inner.to_owned());
    }
    // A cast before a value, `(ns::Type)0`, says nothing that the value does not.
    if text.starts_with('(')
        && let Some(close) = closing(text)
        && close + 1 < text.len()
    {
        return argument(&text[close + 1..], depth);
    }
    let end = parameters(text);
    let words = split(&text[..end], Separator::Space);
    let words: Vec<String> = words.into_iter().map(|word| path(word, depth)).collect();
    let mut shown = words.join(" ");
    if let Some(types) = last_lambda(&text[end..], depth) {
        shown.push_str(&types);
    }
    shown
}

/// `ns::Name<...>` without its namespaces; a name that many share keeps the one before it.
fn path(text: &str, depth: Depth) -> String {
    let text = text.trim_start_matches('&');
    let components = split(text, Separator::Colons);
    let Some((last, before)) = components.split_last() else { return String::new() };
    // The call operator of a functor.
    if let ("operator()", Some(functor)) = (*last, before.last()) {
        return component(functor, depth);
    }
    let shown = component(last, depth);
    match before.last().filter(|before| is_shared(last) && !is_plain(before)) {
        Some(before) => format!("{}::{shown}", component(before, depth)),
        None => shown,
    }
}

/// One name with its template arguments down to `depth` levels.
fn component(text: &str, depth: Depth) -> String {
    let Some(open) = text.find('<').filter(|_| !text.starts_with("operator<")) else {
        return text.to_owned();
    };
    let mut shown = text[..open].to_owned();
    let inside = &text[open + 1..];
    let close = matching(inside);
    // ATen wraps what its reductions do: `func_wrapper_t<float, sum_functor<...>>`.
    if &text[..open] == "func_wrapper_t"
        && depth.followed > 0
        && let [_, wrapped] = split(&inside[..close], Separator::Comma)[..]
    {
        return argument(wrapped, depth.below(1));
    }
    if depth.is_over() {
        shown.push_str("<…");
    } else {
        let arguments = split(&inside[..close], Separator::Comma);
        let below = depth.below(arguments.len());
        let mut arguments: Vec<String> =
            arguments.into_iter().map(|text| argument(text, below)).collect();
        if depth.is_terse {
            if text.starts_with("gpu_kernel_impl") && arguments.len() == 1 {
                return arguments.concat();
            }
            if text[..open].ends_with("Functor") {
                arguments.dedup();
            }
        }
        shown.push('<');
        shown.push_str(&arguments.join(", "));
    }
    // A name that the profiler cut short has no end.
    if close < inside.len() {
        shown.push_str(&inside[close..]);
    }
    shown
}

/// What tells lambdas of one function apart: the types of the innermost one's parameters, for which a generic kernel was
/// built (`f(int)::{lambda()#2}::operator()() const::{lambda(c10::BFloat16)#1}` is for `BFloat16`), and its number where
/// it is not the first. A parameter list of indices says nothing.
fn last_lambda(text: &str, depth: Depth) -> Option<String> {
    let rest = &text[text.rfind("lambda(")? + "lambda(".len()..];
    let close = closing_parenthesis(rest)?;
    let types = split(&rest[..close], Separator::Comma);
    let shown = depth.shown.min(1);
    let depth = Depth { shown, followed: depth.followed.saturating_sub(1), ..depth };
    let mut types: Vec<String> = types.into_iter().map(|text| argument(text, depth)).collect();
    let mut shown = String::new();
    if !matches!(types.join(", ").as_str(), "" | "int" | "int, bool" | "unsigned int") {
        if depth.is_terse {
            types.dedup();
        }
        shown = format!("({})", types.join(", "));
    }
    let number = rest[close..].strip_prefix(")#").unwrap_or_default();
    let number = &number[..number.bytes().take_while(u8::is_ascii_digit).count()];
    if !matches!(number, "" | "1") {
        shown.push('#');
        shown.push_str(number);
    }
    Some(shown)
}

fn is_plain(component: &str) -> bool {
    component.is_empty()
        || PLAIN.contains(&component)
        || VERSIONED.iter().any(|prefix| component.starts_with(prefix))
}

fn is_shared(component: &str) -> bool {
    let name = component.split('<').next().unwrap_or_default();
    let digits = name.strip_prefix("Policy").unwrap_or("-");
    SHARED.contains(&name) || digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Comma,
    Space,
    Colons,
}

/// The parts of a text between separators outside all brackets; no part of a type such as `unsigned int` is lost.
fn split(text: &str, separator: Separator) -> Vec<&str> {
    let (mut parts, mut from) = (Vec::new(), 0);
    let mut level = Level::default();
    let bytes = text.as_bytes();
    for (at, byte) in text.bytes().enumerate() {
        let outside = level.is_outside() && at >= from;
        let length = match (separator, byte) {
            (Separator::Comma, b',') | (Separator::Space, b' ') => 1,
            (Separator::Colons, b':') if bytes.get(at + 1) == Some(&b':') => 2,
            _ => 0,
        };
        if outside && length > 0 {
            parts.push(&text[from..at]);
            from = at + length;
        }
        level.see(byte);
    }
    parts.push(text.get(from..).unwrap_or_default());
    parts.retain(|part| separator == Separator::Colons || !part.trim().is_empty());
    parts
}

/// Where the parameter list begins: the first `(` outside template arguments that does not belong to `operator()`,
/// begins the text or follows a space, as in "Memcpy HtoD (Pageable -> Device)". The length if there is none.
fn parameters(text: &str) -> usize {
    let mut level = Level::default();
    for (at, byte) in text.bytes().enumerate() {
        if byte == b'('
            && level.is_outside()
            && at > 0
            && !text[..at].ends_with([' ', '&'])
            && !(text[..at].ends_with("operator") && text[at..].starts_with("()"))
        {
            return at;
        }
        level.see(byte);
    }
    text.len()
}

/// The last space outside all brackets, which ends a return type.
fn last_space(text: &str) -> Option<usize> {
    let mut level = Level::default();
    let mut found = None;
    for (at, byte) in text.bytes().enumerate() {
        if byte == b' ' && level.is_outside() && !text[..at].ends_with("operator") {
            found = Some(at);
        }
        level.see(byte);
    }
    found.filter(|at| at + 1 < text.len())
}

/// Where the `>` stands that closes an argument list, whose `<` is not in `text`; the length if the name is cut short.
fn matching(text: &str) -> usize {
    let mut level = Level { open: vec![b'<'], previous: b'<' };
    for (at, byte) in text.bytes().enumerate() {
        level.see(byte);
        if level.is_outside() {
            return at;
        }
    }
    text.len()
}

/// Where the parenthesis stands that closes the one `text` begins with.
fn closing(text: &str) -> Option<usize> {
    closing_parenthesis(text.get(1..)?).map(|at| at + 1)
}

/// Where the first parenthesis stands that closes more than was opened.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut open = 1_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => open += 1,
            b')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// Counts brackets. Inside parentheses `<` and `>` are operators, or types that the parentheses enclose.
#[derive(Default)]
struct Level {
    open: Vec<u8>,
    previous: u8,
}

impl Level {
    fn is_outside(&self) -> bool {
        self.open.is_empty()
    }

    fn see(&mut self, byte: u8) {
        let top = self.open.last().copied();
        match byte {
            b'<' if top != Some(b'(') => self.open.push(b'<'),
            b'>' if top == Some(b'<') && self.previous != b'-' => {
                self.open.pop();
            }
            b'(' => self.open.push(b'('),
            b')' if top == Some(b'(') => {
                self.open.pop();
            }
            _ => {}
        }
        self.previous = byte;
    }
}
