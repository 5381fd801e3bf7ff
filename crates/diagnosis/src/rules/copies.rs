//! M7: copies are a symptom; what they are for decides what helps.

mod causes;

use catalog::CopyRoute;
use catalog::remedies::Stack;
use host::copies::{CopyPlace, Purpose};
use report::units::{self, count, plural, time};

use crate::facts::{Device, SMALL};
use crate::{Facts, Finding, Level, Rule};

use causes::{AUTOCAST, FUSED, by_ops, is_by_autocast, is_in_fused, of_ddp};

/// Copies of less than this share of the busy time are not worth a word.
const LEAST_SHARE: f64 = 0.01;

pub fn check(facts: &Facts<'_>) -> Vec<Finding> {
    if facts.is_capture() {
        return Vec::new();
    }
    let window = facts.wall_ns();
    let of_window = |ns: i64| ns as f64 / window as f64;
    let busy = facts.busy_ns();
    if busy == 0 {
        return Vec::new();
    }
    let share = |ns: i64| ns as f64 / busy as f64;
    let mut found = Vec::new();
    // (By place, because there a copy inside a copy counts once.)
    for (purpose, places_of) in &facts.host.copy_places {
        if is_to_device(*purpose) && is_set_up(facts) {
            continue;
        }
        let sum = Sum::of(places_of);
        let Some((verdict, what, meaning)) = words(*purpose) else { continue };
        // (Of a run that waits for something else, they are a figure where the CPU waits for them.)
        let waits = matches!(*purpose, Purpose::ToDevicePageable | Purpose::ToHostPageable);
        if share(sum.device_ns) < LEAST_SHARE || (of_window(sum.device_ns) < LEAST_SHARE && !waits)
        {
            continue;
        }
        let of_loop = one_by_one(facts, *purpose);
        let meaning = match of_loop.as_deref() {
            Some(of_loop) => of_loop,
            // (What goes to the GPU in a pass of an engine comes from the pass before: there is no batch ahead.)
            None if *purpose == Purpose::ToDevicePinned && serves(facts) => "",
            // (They run beside kernels already.)
            None if is_to_device(*purpose) && sum.exposed_ns.saturating_mul(4) < sum.device_ns => {
                ""
            }
            // (torch.compile copies the inputs of a graph into its memory, and its outputs out of it.)
            // (So does a program that replays graphs by itself.)
            None if verdict == "d2d" && facts.has_graphs() => "",
            None if *purpose == Purpose::Cast && is_by_autocast(places_of) => AUTOCAST,
            None if *purpose == Purpose::Cast && is_in_fused(facts, places_of) => FUSED,
            None => by_ops(*purpose, places_of).unwrap_or(meaning),
        };
        let exposed_ns = sum.exposed_ns;
        let text = format!(
            "{} aten::copy_ {what}: {} of GPU time ({}).{}",
            count(sum.count),
            time(sum.device_ns),
            facts.of_busy(sum.device_ns),
            places(facts, *purpose, sum.count)
        );
        let finding = Finding::fact(Rule::Copies, verdict, text).with(
            "copies.copy__diag",
            "such copies",
            count(sum.count),
        );
        // (Those of DistributedDataParallel have a cure of their own.)
        let (bound_ns, meaning) = match of_ddp(facts, *purpose, places_of) {
            Some(of_ddp) => of_ddp,
            None if of_window(sum.device_ns) >= LEAST_SHARE => {
                let (bound_ns, why) = without(facts, *purpose, &sum);
                let is_little = of_window(bound_ns) < LEAST_SHARE;
                let why = if is_little { String::new() } else { why };
                // (Kernels leave no more to hide them.)
                let is_cut = *purpose == Purpose::ToDevicePinned && bound_ns < exposed_ns;
                let meaning = if is_little && is_cut { FEWER_BYTES } else { meaning };
                // (A change of the type is one wherever it is made.)
                let sums =
                    if *purpose == Purpose::OnDevice { sums(places_of) } else { String::new() };
                (bound_ns, format!("{meaning}{sums}{why}"))
            }
            None => (exposed_ns, meaning.to_owned()),
        };
        // (Of a first run the parameters are copied, once: that is a figure.)
        if is_to_device(*purpose) && facts.devices().any(|device| device.cold().is_some()) {
            found.push(finding);
            continue;
        }
        // (Of a run that waits for something else, they are a figure; and what another stream hides costs nothing.)
        let (takes, saves) = (of_window(sum.device_ns), of_window(bound_ns));
        let is_pageable = verdict == "h2d_pageable";
        let is_said = takes < crate::WITHIN_NOISE || is_pinned_elsewhere(facts, exposed_ns);
        let finding = finding.aside(is_pageable && (is_said || is_tiny(facts, saves)));
        found.push(match (takes >= LEAST_SHARE, saves >= LEAST_SHARE) {
            (false, _) if !is_pageable => finding,
            (true, true) => finding.level(Level::of_share(saves)).bound(bound_ns).means(meaning),
            _ => finding.means(meaning),
        });
    }
    if !found.iter().any(|finding: &Finding| finding.verdict == "d2d") {
        found.extend(on_device(facts, busy));
    }
    found
}

/// Whether rows of the overlap table advise pinned memory for most of what copies from pageable memory cost; or batches come no earlier for it.
fn is_pinned_elsewhere(facts: &Facts<'_>, exposed_ns: i64) -> bool {
    let (paced_ns, _) = facts.paced_pageable();
    let advised_ns = facts.pinned_by_rows_ns();
    // (Less is no action.)
    let is_advised = advised_ns as f64 >= LEAST_SHARE * facts.wall_ns() as f64
        && advised_ns.saturating_mul(2) >= exposed_ns.saturating_sub(paced_ns);
    is_advised || paced_ns.saturating_mul(2) > exposed_ns
}

/// A bound that is this much below the exposed time, or above it, is explained.
const LEAST_CHANGE: f64 = 0.2;

/// How much sooner the run ends without copies that go away altogether, with their ops, and why that is not the time in which nothing else
/// runs; of others that time.
fn without(facts: &Facts<'_>, purpose: Purpose, sum: &Sum) -> (i64, String) {
    use Purpose::{Broadcast, Cast, Layout, OnDevice};
    let exposed_ns = sum.exposed_ns;
    // (The exposed time is of all devices.)
    let mut devices = facts.devices();
    let device = devices.next().filter(|_| devices.next().is_none());
    match (purpose, device) {
        (Purpose::ToDevicePinned, Some(device)) => return beside_kernels(&device, exposed_ns),
        (Purpose::ToDevicePageable, Some(device)) => {
            let (paced_ns, paced) = facts.paced_pageable();
            let counted_ns = exposed_ns.saturating_sub(paced_ns).max(0);
            let (ns, text) = device.with_pinned_memory(counted_ns);
            let (idle_ns, around) = device.idle_around_pageable(ns);
            return (ns.saturating_add(idle_ns), paced + &text + &around);
        }
        _ => {}
    }
    if purpose == Purpose::ToDevicePageable {
        let (paced_ns, paced) = facts.paced_pageable();
        return (exposed_ns.saturating_sub(paced_ns).max(0), paced);
    }
    if !matches!(purpose, Cast | Layout | OnDevice | Broadcast) {
        return (exposed_ns, String::new());
    }
    let made = facts.host.copies.made.iter().filter(|(_, of)| *of == purpose);
    let mut ops: Vec<usize> =
        made.map(|(at, _)| host::copies::made_by(facts.slices, *at)).collect();
    trace::sort(&mut ops);
    ops.dedup();
    let saved = facts.devices().map(|device| device.saved_without_ops_ns(&ops));
    let saved_ns = saved.max().unwrap_or_default();
    let cut = facts.devices().map(|device| device.without_profiler_ns(saved_ns, sum.device_ns));
    let cut_ns = cut.min().unwrap_or(saved_ns);
    let cpu_ns: i64 = ops.iter().map(|at| facts.slices.ops.slices[*at].dur_ns()).sum();
    let change = (saved_ns - exposed_ns) as f64 / exposed_ns.max(1) as f64;
    let why = match change {
        // (The exposed time is of all iterations, the saving of the warm ones.)
        _ if facts.left_out().is_some() || cut_ns < saved_ns => String::new(),
        more if more > LEAST_CHANGE => format!(
            " The CPU spends {} in the ops that make them; as the GPU waits for launches, the bound includes that.",
            time(cpu_ns)
        ),
        less if less < -LEAST_CHANGE => format!(
            " Removing them would save at most {}: what follows is launched no earlier.",
            time(saved_ns)
        ),
        _ => String::new(),
    };
    (cut_ns, why)
}

/// What remains for copies that no kernel is left to hide.
const FEWER_BYTES: &str = "Hardly any kernel time is left to hide them: only fewer bytes make them shorter, with a smaller dtype or with \
                           data that stays on the GPU.";

/// How much of copies can run beside kernels: as long as kernels run alone, and why that is less than the time in which nothing else runs.
fn beside_kernels(device: &Device<'_>, exposed_ns: i64) -> (i64, String) {
    let alone_ns = device.kernels_alone_ns();
    if alone_ns >= exposed_ns {
        return (exposed_ns, String::new());
    }
    let why = format!(
        " Kernels run alone for {}: no more of the copies can be hidden. Fewer bytes make them shorter.",
        time(alone_ns)
    );
    (alone_ns, why)
}

/// That some are of products, which make them whatever is changed around them; empty where none are.
fn sums(places: &[CopyPlace]) -> String {
    match places.iter().map(|place| place.n_sums).sum() {
        0 => String::new(),
        n => format!(
            " Exceptions: those of addmm and baddbmm ({}), which copy the tensor that they add to.",
            count(n)
        ),
    }
}

/// Copies on the GPU that other ops make, such as those into the buckets of DistributedDataParallel.
fn on_device(facts: &Facts<'_>, busy: i64) -> Option<Finding> {
    let copies = &facts.host.copies;
    let on_device = copies.memcpy_kinds.iter().filter(|kind| kind.kind.contains("DtoD"));
    let (n, ns, exposed) = on_device.fold((0, 0, 0), |(n, ns, exposed), kind| {
        (n + kind.count, ns + kind.time_ns, exposed + kind.exposed_ns)
    });
    if (ns as f64 / busy as f64) < LEAST_SHARE {
        return None;
    }
    let text = format!(
        "{} copies on the GPU take {}; no kernel runs at the same time for {}.",
        count(n),
        time(ns),
        time(exposed)
    );
    let finding = Finding::fact(Rule::Copies, "d2d", text).with(
        "copies.memcpy_kinds",
        "copies on the GPU",
        count(n),
    );
    let share = exposed as f64 / facts.wall_ns() as f64;
    Some(match share < LEAST_SHARE {
        true => finding,
        false => finding.level(Level::of_share(share)).bound(exposed),
    })
}

fn is_to_device(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::ToDevicePageable | Purpose::ToDevicePinned | Purpose::ToDevice)
}

/// Whether all copies to the GPU are made before the first warm iteration: the parameters of the model, once.
fn is_set_up(facts: &Facts<'_>) -> bool {
    let warm = facts.iterations.iter().flat_map(|found| found.warm());
    let Some(first_ns) = warm.map(|one| one.window().0).min() else { return false };
    let is_to_device = facts.slices.names_with("HtoD");
    let mut copies =
        facts.gpu.slices.iter().filter(|one| {
            !one.is_kernel && is_to_device[facts.trace.name(one.slice.row).0 as usize]
        });
    copies.all(|one| one.launch.is_some_and(|call| call.start_ns < first_ns))
}

/// Whether an inference engine runs.
pub(super) fn serves(facts: &Facts<'_>) -> bool {
    matches!(facts.triage.run_facts.stack, Some(Stack::Vllm | Stack::Sglang | Stack::TensorRtLlm))
}

/// From this many copies to the CPU in an iteration on they are those of a loop.
const MANY: u64 = 100;

/// Whether copies to the GPU from pageable memory move so few bytes on average that pinned memory makes them no shorter, and
/// save less than is worth it, a share of the window.
fn is_tiny(facts: &Facts<'_>, saves: f64) -> bool {
    let kinds = facts.host.copies.memcpy_kinds.iter();
    let own = kinds.filter(|kind| kind.kind.contains("HtoD") && kind.kind.contains("Pageable"));
    let (n, bytes) = own.fold((0, 0), |(n, bytes), kind| (n + kind.n_bytes, bytes + kind.bytes));
    saves < LEAST_SHARE && i64::try_from(n).is_ok_and(|n| n > 0 && bytes <= SMALL.saturating_mul(n))
}

/// Many small copies to pageable memory of the CPU, in each iteration where the file has any: how many, and the bytes of each on average.
pub(crate) fn small_reads(facts: &Facts<'_>) -> Option<(u64, u64)> {
    let kinds = facts.host.copies.memcpy_kinds.iter();
    let own = kinds.filter(|kind| kind.kind.contains("DtoH") && kind.kind.contains("Pageable"));
    let (n, bytes) = own.fold((0, 0), |(n, bytes), kind| (n + kind.n_bytes, bytes + kind.bytes));
    let mean = bytes / i64::try_from(n).ok().filter(|n| *n > 0)?;
    let list = facts.iterations.as_ref().map_or(0, |iterations| iterations.list.len());
    let per_iteration = n / list.max(1) as u64;
    (per_iteration >= MANY && mean <= SMALL).then_some((n, mean.unsigned_abs()))
}

/// What small copies to the CPU are: a loop over the values of a tensor.
fn one_by_one(facts: &Facts<'_>, purpose: Purpose) -> Option<String> {
    let (_, mean) = small_reads(facts).filter(|_| purpose == Purpose::ToHostPageable)?;
    let each = units::bytes(mean);
    Some(format!(
        "The CPU waits for each of them, and each moves {each} on average: copy all values at once."
    ))
}

/// Copies of one purpose.
struct Sum {
    count: u64,
    device_ns: i64,
    exposed_ns: i64,
}

impl Sum {
    fn of(places: &[CopyPlace]) -> Self {
        let sum = |each: fn(&CopyPlace) -> i64| places.iter().map(each).sum::<i64>();
        let count = places.iter().map(|place| place.count).sum();
        Self {
            count,
            device_ns: sum(|place| place.device_ns),
            exposed_ns: sum(|place| place.exposed_ns),
        }
    }
}

/// Places that a sentence names.
const PLACES: usize = 2;

/// From so many copies on, one that takes most of their time is told.
const FEWEST: usize = 3;

/// The one copy from or to pageable memory that takes most of the time of all, with its size and rate; empty where none does.
fn largest(facts: &Facts<'_>, purpose: Purpose) -> String {
    let route = match purpose {
        Purpose::ToDevicePageable => CopyRoute::HostToDevice,
        Purpose::ToHostPageable => CopyRoute::DeviceToHost,
        _ => return String::new(),
    };
    let own = facts.gpu.slices.iter().filter(|one| facts.is_pageable(one, route));
    let own: Vec<_> = own.collect();
    let all_ns: i64 = own.iter().map(|one| one.slice.dur_ns()).sum();
    let most = own.iter().max_by_key(|one| one.slice.dur_ns());
    let most =
        most.filter(|one| own.len() >= FEWEST && one.slice.dur_ns().saturating_mul(2) > all_ns);
    let size =
        |one: &&&host::links::GpuSlice| facts.details.copied_bytes(one.slice.row)?.try_into().ok();
    most.and_then(|one| Some((one.slice.dur_ns(), size(&one)?))).map_or_else(
        String::new,
        |(ns, bytes): (i64, u64)| {
            let gb_per_s = bytes as f64 / ns.max(1) as f64;
            format!(" One of {} takes {} ({gb_per_s:.1} GB/s).", units::bytes(bytes), time(ns))
        },
    )
}

/// Where most of them are made.
fn places(facts: &Facts<'_>, purpose: Purpose, all: u64) -> String {
    let places = facts.host.copy_places.get(&purpose).map_or(&[][..], Vec::as_slice);
    let named = places.iter().take(PLACES).map(|place| match place.count {
        n if n == all => place.place.clone(),
        n => format!("{} ({})", place.place, count(n)),
    });
    let named: Vec<String> = named.collect();
    let largest = largest(facts, purpose);
    match (named.is_empty(), places.len().saturating_sub(PLACES)) {
        (true, _) => largest,
        (false, 0) => format!(" Made in {}.{largest}", named.join(" and ")),
        (false, more) => {
            format!(
                " Made in {} and {}.{largest}",
                named.join(", "),
                plural(more as u64, "other place", "other places")
            )
        }
    }
}

/// The verdict, the words and what helps; `None` for what says nothing.
fn words(purpose: Purpose) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match purpose {
        Purpose::Cast => {
            ("cast", "convert the dtype", "Keep tensors in the dtype in which they are used.")
        }
        Purpose::Layout => (
            "layout",
            "make tensors contiguous, or pad them",
            "A transposed or sliced tensor is made contiguous, or a tensor is padded: keep the layout from op to op.",
        ),
        Purpose::ToDevicePageable => (
            "h2d_pageable",
            "go to the GPU from pageable memory",
            "From pinned memory (pin_memory=True, non_blocking=True) they do not block the CPU.",
        ),
        Purpose::ToDevicePinned => (
            "h2d_pinned",
            "go to the GPU from pinned memory",
            "On a stream of their own, one batch ahead, they can overlap kernels.",
        ),
        Purpose::ToDevice => {
            ("h2d", "go to the GPU", "The file does not show whether the source is pinned.")
        }
        Purpose::ToHostPinned => {
            ("d2h", "go to pinned CPU memory", "With non_blocking=True they do not block the CPU.")
        }
        Purpose::ToHostPageable => {
            ("d2h", "go to pageable CPU memory", "The CPU waits for each of them.")
        }
        Purpose::ToHost => (
            "d2h",
            "go to the CPU",
            "The CPU waits for such a copy unless it is asynchronous and into pinned memory.",
        ),
        Purpose::OnDevice => (
            "d2d",
            "copy within the GPU",
            "Write the result straight to its destination (out=), or use it without a copy.",
        ),
        Purpose::Broadcast => (
            "broadcast",
            "repeat values",
            "Most ops take the view that expand() returns and need no copy.",
        ),
        Purpose::NoGpu
        | Purpose::BetweenDevices
        | Purpose::MemcpyOther
        | Purpose::KernelUnknown
        | Purpose::KernelSameDtype
        | Purpose::Same => return None,
    })
}
