//! What several devices show alike, said once: of the device with the largest bound, with the others named after it.

use report::units::time;

use crate::{Action, Finding, Rule};

/// `Device 5`, `Devices 4 and 5`.
pub(crate) fn title(devices: &[impl AsRef<str>]) -> String {
    match devices {
        // (A rank with several has them in one text.)
        [one] if one.as_ref().contains(", ") => format!("Devices {}", one.as_ref()),
        [one] => format!("Device {}", one.as_ref()),
        [rest @ .., last] => {
            let rest: Vec<&str> = rest.iter().map(AsRef::as_ref).collect();
            format!("Devices {} and {}", rest.join(", "), last.as_ref())
        }
        [] => String::new(),
    }
}

/// Something that is said of a device.
pub(crate) trait OfDevice: Clone {
    /// What is alike where this is equal.
    type Key: Ord;
    fn key(&self) -> Self::Key;
    fn device(&self) -> Option<&str>;
    fn bound_ns(&self) -> Option<i64>;
    /// Says more.
    fn add(&mut self, sentence: &str);
}

impl OfDevice for Finding {
    type Key = (Rule, &'static str);

    fn key(&self) -> Self::Key {
        (self.rule, self.verdict)
    }

    fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    fn bound_ns(&self) -> Option<i64> {
        self.bound_ns
    }

    fn add(&mut self, sentence: &str) {
        self.meaning = joined(&self.meaning, sentence);
    }
}

impl OfDevice for Action {
    type Key = (String, String);

    fn key(&self) -> Self::Key {
        (self.rule.clone(), self.action.clone())
    }

    fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    fn bound_ns(&self) -> Option<i64> {
        Some(self.bound_ns)
    }

    fn add(&mut self, sentence: &str) {
        self.hypothesis = joined(&self.hypothesis, sentence);
    }
}

fn joined(text: &str, sentence: &str) -> String {
    format!("{text} {sentence}").trim_start().to_owned()
}

/// What has one key on several devices: groups of two and more, each in order. What a device has twice is in none: these are two things.
/// Without a key it is in none, either.
pub(crate) fn of_several<T: OfDevice, K: Ord>(all: &[T], keys: &[Option<K>]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..all.len()).filter(|at| keys[*at].is_some()).collect();
    trace::sort_by(&mut order, |a, b| keys[*a].cmp(&keys[*b]));
    let is_of_several = |members: &&[usize]| {
        let mut devices: Vec<&str> = members.iter().filter_map(|at| all[*at].device()).collect();
        trace::sort(&mut devices);
        devices.dedup();
        members.len() > 1 && devices.len() == members.len()
    };
    let groups = order.chunk_by(|a, b| keys[*a] == keys[*b]).filter(is_of_several);
    groups.map(<[usize]>::to_vec).collect()
}

/// Each kind once, in the order of the rows that stay. What a device has twice stays as it is: these are two things.
pub(crate) fn once<T: OfDevice>(all: Vec<T>) -> Vec<T> {
    let keys: Vec<Option<T::Key>> = all.iter().map(|one| Some(one.key())).collect();
    let mut kept: Vec<Option<T>> = all.iter().cloned().map(Some).collect();
    for members in of_several(&all, &keys) {
        // (Of equal ones the first.)
        let bound = |at: &&usize| (all[**at].bound_ns(), std::cmp::Reverse(**at));
        let Some(most) = members.iter().max_by_key(bound).copied() else { continue };
        let others = || members.iter().filter(|at| **at != most).map(|at| &all[*at]);
        let names: Vec<&str> = others().filter_map(|one| one.device()).collect();
        let bounds = || others().filter_map(|one| one.bound_ns());
        let at_most = match (bounds().min(), bounds().max()) {
            (Some(least), Some(most)) if time(least) == time(most) => {
                format!(": at most {}", time(most))
            }
            (Some(least), Some(most)) => format!(": at most {} to {}", time(least), time(most)),
            _ => String::new(),
        };
        let show = if names.len() == 1 { "shows" } else { "show" };
        let mut told = all[most].clone();
        told.add(&format!("{} {show} the same{at_most}.", title(&names)));
        for at in &members {
            kept[*at] = None;
        }
        kept[most] = Some(told);
    }
    kept.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(device: &str, bound_ns: i64) -> Finding {
        let text = format!("Device {device} waits.");
        Finding::fact(Rule::Sync, "sync_bound", text)
            .on(device)
            .bound(bound_ns)
            .means("So it does.")
    }

    #[test]
    fn what_several_devices_show_is_said_of_the_one_with_most() {
        let all = [finding("0", 1_000), finding("1", 3_000), finding("2", 2_000)];
        let told = once(all.to_vec());
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].observation, "Device 1 waits.");
        assert_eq!(
            told[0].meaning,
            "So it does. Devices 0 and 2 show the same: at most 1.00 \u{b5}s to 2.00 \u{b5}s."
        );
    }

    #[test]
    fn two_findings_of_one_device_stay_two() {
        let all = [finding("0", 1_000), finding("0", 3_000), finding("1", 2_000)];
        assert_eq!(once(all.to_vec()).len(), 3);
        assert_eq!(once(all[..1].to_vec()).len(), 1);
    }
}
