//! What came of the checks of `cargo xtask test`, and what they took.

use std::time::{Duration, Instant};

use crate::shell;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed,
    /// It could not run; the line explains what to do.
    Missing(String),
}

/// A check that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    pub step: String,
    pub outcome: Outcome,
    pub cost: Cost,
}

impl Done {
    /// One line, for another process.
    pub fn line(&self) -> String {
        let (outcome, what) = match &self.outcome {
            Outcome::Passed => ("passed", ""),
            Outcome::Failed => ("failed", ""),
            Outcome::Missing(what) => ("missing", what.as_str()),
        };
        let wall = self.cost.wall.as_secs_f64();
        let cpu = self.cost.cpu_seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
        format!("{}\t{outcome}\t{wall}\t{cpu}\t{}", self.step, what.replace(['\t', '\n'], " "))
    }

    /// What [`Done::line`] has written; nothing for half a line.
    pub fn parse(line: &str) -> Option<Done> {
        let mut fields = line.splitn(5, '\t');
        let (step, outcome) = (fields.next()?.to_owned(), fields.next()?);
        let wall = Duration::try_from_secs_f64(fields.next()?.parse().ok()?).ok()?;
        let cpu_seconds = fields.next()?.parse().ok();
        let what = fields.next()?;
        let outcome = match outcome {
            "passed" => Outcome::Passed,
            "failed" => Outcome::Failed,
            "missing" => Outcome::Missing(what.to_owned()),
            _ => return None,
        };
        Some(Done { step, outcome, cost: Cost { wall, cpu_seconds } })
    }
}

/// Measures a check.
pub struct Meter {
    started: Instant,
    cpu_before: Option<f64>,
}

impl Meter {
    pub fn start() -> Meter {
        Meter { started: Instant::now(), cpu_before: shell::children_cpu_seconds() }
    }

    pub fn read(&self) -> Cost {
        let cpu = shell::children_cpu_seconds()
            .zip(self.cpu_before)
            .map(|(after, before)| after - before);
        Cost { wall: self.started.elapsed(), cpu_seconds: cpu }
    }
}

/// The time of a check.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cost {
    pub wall: Duration,
    pub cpu_seconds: Option<f64>,
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>7.1} s", self.wall.as_secs_f64())?;
        match self.cpu_seconds {
            Some(seconds) => write!(f, " {seconds:>7.1} CPU-s"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Cost, Done, Outcome};

    #[test]
    fn a_result_is_read_as_it_was_written() {
        let outcomes = [Outcome::Passed, Outcome::Failed, Outcome::Missing("no Node".to_owned())];
        for outcome in outcomes {
            for cpu_seconds in [Some(2.5), None] {
                let cost = Cost { wall: Duration::from_millis(1500), cpu_seconds };
                let done = Done { step: "page".to_owned(), outcome: outcome.clone(), cost };
                assert_eq!(Done::parse(&done.line()), Some(done));
            }
        }
    }

    #[test]
    fn half_a_line_is_no_result() {
        for line in ["", "page\tpas", "page\tpassed\t1.5", "page\tpased\t1.5\t2\t"] {
            assert_eq!(Done::parse(line), None, "{line}");
        }
    }
}
