//! Matrix products and convolutions of 32-bit floats that run without tensor cores, and what another number format saves.

use catalog::architectures::{Peak, peak_of};
use catalog::{
    Category, Platform, is_f32_convolution_without_tensor_cores, is_f32_without_tensor_cores,
};
use report::units;
use trace::Trace;

use super::fuse::Ground;
use super::iterations::WarmSlices;
use super::paced;
use super::site::Attribution;
use timeline::gpu::Gpu;
use timeline::percent;
use wall::Wall;

/// From this share of GPU time on such products are worth a sentence, in percent.
const LEAST_PCT: f64 = 20.0;
/// Time saved that is this part of the GPU time that goes away is all of it, in percent.
const ALL_PCT: f64 = 90.0;
/// TF32 that is not this much faster than plain f32 is not advised: GeForce GPUs run both at the same rate.
const LEAST_GAIN: f64 = 1.5;

/// The peak rates of the trace's devices, if all have one known name.
#[inline(never)]
pub(super) fn peak(trace: &Trace) -> Option<&'static Peak> {
    let devices = timeline::device::devices(trace);
    let mut peaks = devices.iter().map(|one| peak_of(&one.name, one.n_units, one.memory_bytes));
    let first = peaks.next()??;
    peaks.all(|peak| peak == Some(first)).then_some(first)
}

/// What of the work runs in plain 32-bit floats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Plain {
    Product,
    Convolution,
}

impl Plain {
    fn of(category: Category, name: &str) -> Option<Self> {
        match category {
            Category::Gemm if is_f32_without_tensor_cores(name) => Some(Self::Product),
            Category::Conv if is_f32_convolution_without_tensor_cores(name) => {
                Some(Self::Convolution)
            }
            _ => None,
        }
    }
}

/// The number format that is advised, and how much faster the device is in it.
#[derive(Clone, Copy)]
struct Faster {
    peak: &'static Peak,
    /// Whether it is TF32; else a format of 16 bits.
    tf32: bool,
    /// The peak rate in TFLOPS.
    rate: f64,
}

impl Faster {
    /// `None` where the device has nothing faster.
    fn of(peak: &'static Peak) -> Option<Self> {
        let tf32 = peak.tf32_tflops >= LEAST_GAIN * peak.f32_tflops;
        let rate = if tf32 { peak.tf32_tflops } else { peak.half_tflops };
        (rate >= LEAST_GAIN * peak.f32_tflops).then_some(Self { peak, tf32, rate })
    }

    /// The part of its time that a product of plain floats does not take in this format.
    fn gain(self) -> f64 {
        1.0 - self.peak.f32_tflops / self.rate
    }

    fn how(self) -> &'static str {
        if self.tf32 {
            "Call torch.set_float32_matmul_precision(\"high\") to run them as TF32 (inputs with 10 bits of mantissa), or use torch.autocast (bfloat16 or float16)."
        } else {
            "Use torch.autocast (float16, or bfloat16 from compute capability 8.0 on) to run them on tensor cores."
        }
    }

    fn ratio(self) -> String {
        let Self { peak, tf32, rate } = self;
        let f32 = peak.f32_tflops;
        let format = if tf32 { "TF32" } else { "FP16" };
        format!(
            "the ratio of the peak rates of the {} ({f32} TFLOPS FP32, {rate} TFLOPS {format})",
            peak.title
        )
    }
}

/// What another number format saves: see [`PlainProducts`].
struct Gain {
    text: String,
    saved_ns: i64,
    gone_ns: i64,
    counts: Counts,
}

/// The time of plain 32-bit products and convolutions on a device.
#[derive(Default)]
struct PlainTime {
    product_ns: i64,
    convolution_ns: i64,
    /// Part of both in attention that is advised to be fused.
    shared_ns: i64,
    /// By slice, sorted: the exposed time that goes away.
    removed: Vec<(u32, i64)>,
    /// What goes away and only makes waits for the workers of a data loader longer.
    paced_ns: i64,
}

impl PlainTime {
    /// Convolutions count only on devices without TF32: with it, cuDNN may use tensor cores already and chose not to.
    fn of(
        gpu: &Gpu<'_>,
        places: &Attribution,
        exposed_ns: &[i64],
        attention: &[u32],
        (faster, warm): (Faster, Option<WarmSlices<'_>>),
    ) -> Self {
        let kinds: Vec<Option<Plain>> = gpu
            .works
            .iter()
            .map(|work| Plain::of(work.category, gpu.trace.strings.get(work.name)))
            .collect();
        let mut found = Self::default();
        for at in 0..gpu.len() {
            let slice = gpu.slice(at);
            if warm.is_some_and(|warm| !warm.has(at)) {
                continue;
            }
            let sum = match kinds[slice.work] {
                None => continue,
                Some(Plain::Product) if !places.site(at).is_of_convolution() => {
                    &mut found.product_ns
                }
                Some(_) if !faster.tf32 => &mut found.convolution_ns,
                Some(_) => continue,
            };
            *sum = sum.saturating_add(slice.dur_ns);
            if attention.binary_search(&(at as u32)).is_ok() {
                found.shared_ns = found.shared_ns.saturating_add(slice.dur_ns);
            }
            let exposed_ns = exposed_ns.get(at).copied().unwrap_or_default();
            found.removed.push((at as u32, (exposed_ns as f64 * faster.gain()) as i64));
        }
        found.paced_ns = paced::absorb(gpu, &mut found.removed);
        found
    }

    fn total_ns(&self) -> i64 {
        self.product_ns.saturating_add(self.convolution_ns)
    }

    fn what(&self) -> &'static str {
        match (self.product_ns, self.convolution_ns) {
            (_, 0) => "matrix products",
            (0, _) => "convolutions",
            _ => "matrix products and convolutions",
        }
    }

    /// What is gained; `None` where no change of the products could be measured.
    fn gain(&self, wall: &Wall, faster: Faster) -> Option<Gain> {
        let mut gain = self.gain_alone(wall, faster)?;
        // (Less is the difference between two calls for batches that are there.)
        let is_told = gain.counts != Counts::OnceFed && self.paced_ns > 0;
        if is_told && self.paced_ns.saturating_mul(paced::LEAST_TOLD) >= gain.saved_ns {
            gain.text.push_str(&format!(
                " Not counted: {} that would only turn into waiting for the data loader's workers.",
                units::time(self.paced_ns)
            ));
        }
        Some(gain)
    }

    fn gain_alone(&self, wall: &Wall, faster: Faster) -> Option<Gain> {
        let saved_ns = wall.saved_ns(&self.removed);
        let shorter_ns = self.removed.iter().fold(0_i64, |sum, (_, ns)| sum.saturating_add(*ns));
        // (Less than that is hidden by the noise between two runs.)
        let least_ns = wall.span_ns / 100;
        let most_ns = saved_ns.saturating_add(wall.unsure_ns()).min(shorter_ns);
        if wall.is_unreal() || shorter_ns.max(self.paced_ns) < least_ns {
            return None;
        }
        let ratio = faster.ratio();
        if shorter_ns < least_ns {
            let gone_ns = shorter_ns.saturating_add(self.paced_ns);
            let text = format!(
                "If they speed up by {ratio}, their exposed time falls by {}; until the workers keep up, {} of that only turns into \
                 waiting for them.",
                units::time(gone_ns),
                units::time(self.paced_ns)
            );
            return Some(Gain { text, saved_ns: most_ns, gone_ns, counts: Counts::OnceFed });
        }
        if most_ns < least_ns {
            let text = format!(
                "If they speed up by {ratio}, their exposed time falls by {}; in the recording, late launches delay what follows.",
                units::time(shorter_ns)
            );
            let counts = Counts::WithoutLateLaunches;
            return Some(Gain { text, saved_ns: most_ns, gone_ns: shorter_ns, counts });
        }
        let part = percent(saved_ns, shorter_ns);
        // (Where all of it is saved, no wait is in the way.)
        if part < ALL_PCT && percent(saved_ns, most_ns) < ALL_PCT {
            let text = format!(
                "If they speed up by {ratio}, this saves between {} and {}: the file does not show which stream each wait of the CPU is \
                 for.",
                units::time(saved_ns),
                units::time(most_ns),
            );
            let counts = Counts::Now;
            return Some(Gain { text, saved_ns: most_ns, gone_ns: shorter_ns, counts });
        }
        let less = match part < ALL_PCT {
            true => format!(
                " Their exposed time falls by {}, but other work or late launches then limit the run.",
                units::time(shorter_ns)
            ),
            false => String::new(),
        };
        let text = format!(
            "If they speed up by {ratio}, this saves {} ({} of {}); where memory limits them, it saves less.{less}",
            units::time(saved_ns),
            units::percent(percent(saved_ns, wall.span_ns)),
            wall.span(),
        );
        Some(Gain { text, saved_ns, gone_ns: shorter_ns, counts: Counts::Now })
    }

    /// The sentence about what a fused attention would replace, after a space.
    fn shared(&self) -> String {
        match self.shared_ns {
            0 => String::new(),
            ns => format!(
                " {} of these products belong to the attention that a fused kernel could replace: the two gains do not add up.",
                units::time(ns)
            ),
        }
    }
}

/// Products of 32-bit floats that run without tensor cores on a device that is faster with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainProducts {
    /// The device.
    pub device: String,
    /// What they take, in a sentence.
    pub observation: String,
    /// What to do.
    pub action: &'static str,
    /// What is gained, and what of it another advice shares.
    pub gain: String,
    /// Their GPU time, in ns.
    pub total_ns: i64,
    /// Wall time of the recording that goes away at most, in ns.
    pub saved_ns: i64,
    /// GPU time in which they run alone that goes away, in ns: all that a run without the profiler saves at most. With [`Counts::OnceFed`] it
    /// has what only makes waits longer, too.
    pub gone_ns: i64,
    /// When the change shortens the run.
    pub counts: Counts,
}

/// When a change of the GPU's work shortens the run by what can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// In the recording.
    Now,
    /// Where launches are not late: in the recording they hold what follows.
    WithoutLateLaunches,
    /// Once the workers of the data loader keep up: until then it only makes the waits for them longer.
    OnceFed,
}

impl Counts {
    /// Whether the change shortens the run, as it was recorded or, where launches may be late because of the recording, without the profiler.
    #[must_use]
    pub fn shortens(self, is_slowed: bool) -> bool {
        match self {
            Self::Now => true,
            Self::WithoutLateLaunches => is_slowed,
            Self::OnceFed => false,
        }
    }
}

impl PlainProducts {
    /// Whether the change shortens the run as it was recorded.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.counts == Counts::Now
    }

    /// All of it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{} {} {}", self.observation, self.action, self.gain)
    }
}

/// What plain 32-bit products and convolutions take, and what to do about it. `None` where that is below a fifth of the
/// device's GPU time, where the device has nothing faster, or where its rates are not known.
///
/// `attention` are the slices of attention that is advised to be fused.
#[inline(never)]
pub(super) fn plain_products(
    gpu: &Gpu<'_>,
    places: &Attribution,
    ground: &Ground<'_>,
    attention: &[u32],
) -> Option<PlainProducts> {
    let Ground { run, wall, exposed_ns, peak, warm, .. } = ground;
    let peak = peak.filter(|_| run.facts.platform == Platform::Cuda)?;
    let faster = Faster::of(peak)?;
    let plain = PlainTime::of(gpu, places, exposed_ns, attention, (faster, *warm));
    let total_ns = plain.total_ns();
    // (Of the same slices, so that what ran before profiling is in neither.)
    let mut all_ns = 0_i64;
    for at in (0..gpu.len()).filter(|at| warm.is_none_or(|warm| warm.has(*at))) {
        all_ns = all_ns.saturating_add(gpu.slice(at).dur_ns);
    }
    if percent(total_ns, all_ns) < LEAST_PCT {
        return None;
    }
    let Gain { text, saved_ns, gone_ns, counts } = plain.gain(wall, faster)?;
    Some(PlainProducts {
        device: gpu.device().to_owned(),
        observation: format!(
            "FP32 {} do not use tensor cores for {} ({} of {}).",
            plain.what(),
            units::time(total_ns),
            units::percent(percent(total_ns, all_ns)),
            warm.map_or_else(
                || "GPU time".to_owned(),
                |warm| format!("the GPU time of {}", warm.warm.told())
            ),
        ),
        action: faster.how(),
        gain: format!("{text}{}", plain.shared()),
        total_ns,
        saved_ns,
        gone_ns,
        counts,
    })
}

#[cfg(test)]
mod tests {
    use crate::{Sources, TriageOptions, triage};
    use fixture::{Fixture, kernel, slice};

    const US: i64 = 1_000;
    const MS: i64 = 1_000_000;

    /// The sentence about ten products of 1 ms on a device, all launched at once, or each 3 ms after the one before.
    fn said(device: &str, name: &str, starved: bool) -> Option<String> {
        let mut fixture = Fixture::default();
        let properties = format!(
            r#"[{{"id": 0, "name": "{device}", "computeMajor": 8, "computeMinor": 0, "warpSize": 32}}]"#
        );
        fixture.metadata("deviceProperties", &properties);
        for at in 0..if starved { 400 } else { 10 } {
            let launched_ns = if starved { at * 3 * MS } else { at * 10 * US };
            let begun_ns = if starved { launched_ns + 10 * US } else { MS + at * MS };
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
            fixture.push(launch.at(launched_ns, 5 * US));
            fixture.push(kernel(name).at(begun_ns, MS).link(at + 1));
        }
        let report = triage(&fixture.finish(), &TriageOptions::default(), &Sources::default());
        report.takeaways.into_iter().find(|text| text.contains("do not use tensor cores"))
    }

    #[test]
    fn plain_products_on_a_gpu_with_tensor_cores_are_told() {
        let a100 = said("NVIDIA A100-SXM4-80GB", "ampere_sgemm_128x64_tn", false).unwrap();
        assert!(a100.contains("for 10.0 ms (100.0% of GPU time)"), "{a100}");
        assert!(a100.contains("set_float32_matmul_precision"), "{a100}");
        assert!(a100.contains("this saves 8.75 ms (87.5% of the GPU span)"), "{a100}");
        let starved = said("NVIDIA A100-SXM4-80GB", "ampere_sgemm_128x64_tn", true);
        assert_eq!(starved, None, "the GPU waits for the CPU");
        let v100 = said("Tesla V100-SXM2-16GB", "volta_sgemm_128x64_nn", false).unwrap();
        assert!(v100.contains("torch.autocast (float16") && !v100.contains("TF32"), "{v100}");
        let conv = "void implicit_convolve_sgemm<float, float, 128, 6, 7, 3, 3, 5, 1, false>(int)";
        let conv_of = |device| said(device, conv, false);
        let v100 = conv_of("Tesla V100-SXM2-16GB").unwrap();
        assert!(v100.starts_with("FP32 convolutions do not use tensor cores"), "{v100}");
        assert_eq!(conv_of("NVIDIA A100-SXM4-80GB"), None, "cuDNN may use TF32 there already");
    }

    #[test]
    fn a_gain_is_a_range_where_the_cpu_waits_for_several_streams() {
        // Products on two streams by turns; the CPU waits for those of one, and does something else before the next.
        let mut fixture = Fixture::default();
        let device = r#"[{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0, "warpSize": 32}]"#;
        fixture.metadata("deviceProperties", device);
        for at in 0..10 {
            let start = at * 4 * MS;
            let launch = slice("cuda_runtime", "cudaLaunchKernel").on(1, 1).link(at + 1);
            fixture.push(launch.at(start, 5 * US));
            let product = kernel("ampere_sgemm_128x64_tn").on(0, 7 + at % 2);
            fixture.push(product.at(start + 10 * US, MS).link(at + 1));
            if at % 2 == 0 {
                let wait = slice("cuda_runtime", "cudaStreamSynchronize").on(1, 1);
                fixture.push(wait.at(start + 20 * US, MS));
            }
        }
        let report = triage(&fixture.finish(), &TriageOptions::default(), &Sources::default());
        let said = report.takeaways.iter().find(|text| text.contains("do not use tensor cores"));
        let said = said.unwrap();
        // The last one, launched after five waits that are shorter, ends 6 times 0.875 ms sooner; nothing says that no wait was for more.
        assert!(
            said.contains("this saves between 5.25 ms and 8.75 ms: the file does not show"),
            "{said}"
        );
    }

    #[test]
    fn what_is_not_known_or_not_faster_is_not_told() {
        let tf32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_cublas";
        assert_eq!(said("NVIDIA A100-SXM4-80GB", tf32, false), None);
        assert_eq!(said("NVIDIA Thing", "ampere_sgemm_128x64_tn", false), None);
        assert_eq!(said("Quadro P100", "maxwell_sgemm_128x64_tn", false), None);
        let geforce = said("NVIDIA GeForce RTX 3090", "ampere_sgemm_128x64_tn", false).unwrap();
        assert!(!geforce.contains("TF32"), "TF32 is no faster there: {geforce}");
    }
}
