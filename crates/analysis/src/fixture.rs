//! Traces made by hand, straight into the columns: the analyses are tested without the decoder.

use trace::{
    ByteSpan, Event, Flags, IdToken, Phase, Stream, StringId, Trace, TraceBuilder, TrackId,
};

#[derive(Default)]
pub(crate) struct Fixture {
    builder: TraceBuilder,
    end: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Slice<'a> {
    raw_category: &'a str,
    name: &'a str,
    ts_ns: i64,
    dur_ns: i64,
    link: Option<i64>,
    external: Option<i64>,
    device: i64,
    stream: i64,
    has_stream: bool,
    pid: Option<&'a str>,
    launches: Option<&'a str>,
    phase: Phase,
}

pub(crate) fn slice<'a>(raw_category: &'a str, name: &'a str) -> Slice<'a> {
    Slice {
        raw_category,
        name,
        ts_ns: 0,
        dur_ns: 0,
        link: None,
        external: None,
        device: 0,
        stream: 7,
        has_stream: true,
        pid: None,
        launches: None,
        phase: Phase::Complete,
    }
}

pub(crate) fn kernel(name: &str) -> Slice<'_> {
    slice("kernel", name)
}

impl<'a> Slice<'a> {
    /// The pid as a text, as mergers of ranks write it.
    pub(crate) fn in_process(mut self, pid: &'a str) -> Self {
        self.pid = Some(pid);
        self
    }

    /// The name of the kernel that a runtime call launches, as ROCm's calls have it.
    pub(crate) fn launching(mut self, kernel: &'a str) -> Self {
        self.launches = Some(kernel);
        self
    }
}

impl Slice<'_> {
    pub(crate) fn at(mut self, ts_ns: i64, dur_ns: i64) -> Self {
        (self.ts_ns, self.dur_ns) = (ts_ns, dur_ns);
        self
    }

    /// The file does not tell where it ran.
    pub(crate) fn nowhere(mut self) -> Self {
        self.has_stream = false;
        self
    }

    pub(crate) fn on(mut self, device: i64, stream: i64) -> Self {
        (self.device, self.stream) = (device, stream);
        self
    }

    /// One end of an arrow, not a slice.
    pub(crate) fn arrow(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }

    pub(crate) fn external(mut self, id: i64) -> Self {
        self.external = Some(id);
        self
    }

    pub(crate) fn link(mut self, correlation: i64) -> Self {
        self.link = Some(correlation);
        self
    }
}

impl Fixture {
    pub(crate) fn push(&mut self, slice: Slice<'_>) {
        let mut flags = Flags::default();
        flags.set(Flags::HAS_TS);
        if slice.phase == Phase::Complete {
            flags.set(Flags::HAS_DUR);
        }
        match slice.raw_category.to_ascii_lowercase().as_str() {
            "kernel" => flags.set(Flags::KERNEL),
            "gpu_memcpy" | "gpu_memset" | "memcpy" | "memset" => flags.set(Flags::GPU_MEMORY),
            _ => {}
        }
        let on_gpu = flags.has(Flags::KERNEL) || flags.has(Flags::GPU_MEMORY);
        let has_stream = on_gpu && slice.has_stream;
        let (device, stream) = (IdToken::Int(slice.device), IdToken::Int(slice.stream));
        let pid = slice.pid.map_or(device, |pid| IdToken::Text(self.intern(pid)));
        let event = Event {
            phase: slice.phase,
            flags,
            ts_ns: slice.ts_ns,
            dur_ns: slice.dur_ns,
            name: self.intern(slice.name),
            raw_category: self.intern(slice.raw_category),
            track: self.track(pid, stream),
            link: slice.link,
            external: slice.external,
            stream: if has_stream { self.builder.stream(Stream { device, stream }) } else { None },
            span: ByteSpan { start: self.end, len: 10 },
        };
        self.end += 10;
        let row = self.builder.trace().len() as trace::Row;
        assert!(self.builder.push(&event, None));
        if let Some(kernel) = slice.launches {
            let kernel = self.intern(kernel);
            self.builder.launches(row, kernel);
        }
    }

    pub(crate) fn metadata(&mut self, key: &str, json: &str) {
        self.builder.trace_mut().metadata.members.push((key.to_owned(), json.to_owned()));
    }

    pub(crate) fn finish(self) -> Trace {
        self.builder.finish()
    }

    fn intern(&mut self, text: &str) -> StringId {
        self.builder.strings().intern(text)
    }

    fn track(&mut self, pid: IdToken, tid: IdToken) -> TrackId {
        self.builder.track(pid, tid)
    }
}

/// A small trace with some of everything: two devices, three streams, kernels of several categories that
/// overlap, a copy, a fill, a kernel from before the window, steps on both sides.
pub(crate) fn trace() -> Trace {
    const GEMM: &str = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x64x64_MI16x16x1_ISA942";
    const ADD: &str = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)";
    let mut fixture = Fixture::default();
    fixture.metadata("hip_runtime_version", "60443483");
    fixture.metadata(
        "deviceProperties",
        r#"[{"id": 0, "name": "AMD Instinct MI300X", "totalGlobalMem": 206141652992, "computeMajor": 9, "computeMinor": 4, "warpSize": 64, "numSms": 304}, {"id": 1, "name": ""}]"#,
    );
    fixture.metadata("distributedInfo", r#"{"backend": "nccl", "rank": 0, "world_size": 2}"#);
    fixture.push(slice("user_annotation", "ProfilerStep#3").at(1_000_000, 500_000).on(400, 401));
    fixture.push(slice("cpu_op", "aten::mm").at(1_001_000, 20_000).on(400, 401));
    for correlation in 1..=9 {
        let launch = slice("cuda_runtime", "hipExtModuleLaunchKernel").link(correlation);
        fixture.push(launch.at(1_002_000 + correlation * 3_000, 2_000).on(400, 401));
    }
    fixture.push(slice("gpu_user_annotation", "ProfilerStep#3").at(1_050_000, 400_000));
    fixture.push(kernel("qwertz_v2").at(1_000_500, 13_250).link(100));
    fixture.push(kernel(GEMM).at(1_050_000, 120_500).link(1));
    fixture.push(kernel(GEMM).at(1_180_000, 118_250).link(2));
    fixture.push(kernel(GEMM).at(1_310_000, 119_001).link(3));
    fixture.push(kernel(ADD).at(1_300_000, 4_100).link(4));
    fixture.push(kernel(ADD).at(1_430_000, 3_900).link(5));
    fixture.push(kernel("attn_fwd").at(1_100_000, 90_000).on(0, 12).link(6));
    fixture.push(
        kernel("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)")
            .at(1_200_000, 60_000)
            .on(1, 7)
            .link(7),
    );
    fixture.push(slice("gpu_memcpy", "Memcpy HtoD (Host -> Device)").at(1_440_000, 1_500).link(8));
    fixture.push(slice("gpu_memset", "Memset (Device)").at(1_442_000, 0).link(9));
    fixture.finish()
}
