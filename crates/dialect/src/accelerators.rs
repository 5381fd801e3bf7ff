//! Accelerators whose work Kinetoscope does not analyse.
//!
//! Sources: `libkineto/src/ActivityType.cpp` of Kineto (2025), and Enflame's fork of it. XPU and PrivateUse1 devices record
//! `kernel` and `gpu_memcpy`, which are analysed.

use crate::{RawCategory, Records, row};

/// A family of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accelerator {
    /// NVIDIA's and AMD's.
    Gpu,
    /// Intel's GPUs.
    Xpu,
    /// Devices that PyTorch knows by a plug-in.
    PrivateUse1,
    /// Meta's.
    Mtia,
    /// Intel's Gaudi.
    Hpu,
    /// The Glow compiler's devices.
    Glow,
    /// Enflame's.
    Gcu,
    /// Huawei's Ascend.
    Ascend,
}

impl Accelerator {
    /// What its events are called.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Xpu => "XPU",
            Self::PrivateUse1 => "PrivateUse1",
            Self::Mtia => "MTIA",
            Self::Hpu => "HPU",
            Self::Glow => "Glow",
            Self::Gcu => "GCU",
            Self::Ascend => "Ascend NPU",
        }
    }
}

/// Their raw categories.
pub(crate) const RAW_CATEGORIES: &[RawCategory] = &[
    row("mtia_ccp_events", Records::Work(Accelerator::Mtia)),
    row("mtia_workloadd", Records::Work(Accelerator::Mtia)),
    row("mtia_insight", Records::Work(Accelerator::Mtia)),
    row("hpu_op", Records::Work(Accelerator::Hpu)),
    row("glow_runtime", Records::Work(Accelerator::Glow)),
    row("gcu_memcpy", Records::Work(Accelerator::Gcu)),
    row("gcu_memset", Records::Work(Accelerator::Gcu)),
    row("mtia_runtime", Records::Call(Accelerator::Mtia)),
    row("xpu_runtime", Records::Call(Accelerator::Xpu)),
    row("xpu_driver", Records::Call(Accelerator::Xpu)),
    row("privateuse1_runtime", Records::Call(Accelerator::PrivateUse1)),
    row("privateuse1_driver", Records::Call(Accelerator::PrivateUse1)),
    row("gcu_runtime", Records::Call(Accelerator::Gcu)),
    row("gcu_driver", Records::Call(Accelerator::Gcu)),
];

/// The process under which the profiler of Ascend NPUs (msprof, torch_npu) puts what ran on the device.
pub const ASCEND_PROCESS: &str = "Ascend Hardware";
