//! Columns that several tables share.

use report::{Cell, Column, Unit};

/// The column "Kernel".
#[must_use]
pub const fn kernel_name<R>(help: &'static str, cell: fn(&R) -> Cell) -> Column<R> {
    Column { key: "kernel_name", title: "Kernel", unit: Unit::Name, help, cell }
}

/// The column "Category".
#[must_use]
pub const fn category<R>(help: &'static str, cell: fn(&R) -> Cell) -> Column<R> {
    Column { key: "category", title: "Category", unit: Unit::Category, help, cell }
}

/// The column "Family".
#[must_use]
pub const fn family<R>(help: &'static str, cell: fn(&R) -> Cell) -> Column<R> {
    Column { key: "family", title: "Family", unit: Unit::Text, help, cell }
}

/// The column "Device".
#[must_use]
pub const fn device<R>(help: &'static str, cell: fn(&R) -> Cell) -> Column<R> {
    Column { key: "device", title: "Device", unit: Unit::Text, help, cell }
}

/// The column "Total".
#[must_use]
pub const fn total_ns<R>(help: &'static str, cell: fn(&R) -> Cell) -> Column<R> {
    Column { key: "total_ns", title: "Total", unit: Unit::Time, help, cell }
}

/// A share of total durations; the title names the whole.
#[must_use]
pub const fn share_pct<R>(
    title: &'static str,
    help: &'static str,
    cell: fn(&R) -> Cell,
) -> Column<R> {
    Column { key: "share_pct", title, unit: Unit::Percent, help, cell }
}

/// The title of a share of all GPU time.
pub const OF_GPU_TIME: &str = "Share of GPU time";
/// The title of a share of a stage's GPU time.
pub const OF_STAGE_TIME: &str = "Share of stage GPU time";

/// The column "Busy".
#[must_use]
pub const fn busy_ns<R>(help: &'static str, cell: fn(&R) -> Cell) -> Column<R> {
    Column { key: "busy_ns", title: "Busy", unit: Unit::Time, help, cell }
}

/// The column "Busy, share of span".
#[must_use]
pub const fn busy_pct<R>(help: &'static str, cell: fn(&R) -> Cell) -> Column<R> {
    Column { key: "busy_pct", title: "Busy, share of span", unit: Unit::Percent, help, cell }
}

/// The column "GPU slices".
#[must_use]
pub const fn n_slices<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "Slices on the GPU: kernels, copies and fills.";
    Column { key: "n_slices", title: "GPU slices", unit: Unit::Count, help, cell }
}

/// The column "Kernels".
#[must_use]
pub const fn n_kernels<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "Kernels only, without copies and fills.";
    Column { key: "n_kernels", title: "Kernels", unit: Unit::Count, help, cell }
}

/// The column "Launches".
#[must_use]
pub const fn launches<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "Number of launches.";
    Column { key: "launches", title: "Launches", unit: Unit::Count, help, cell }
}

/// The column "Stream".
#[must_use]
pub const fn stream<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "The CUDA or HIP stream.";
    Column { key: "stream", title: "Stream", unit: Unit::Text, help, cell }
}

/// The column "Duration".
#[must_use]
pub const fn dur_ns<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "Duration of the slice.";
    Column { key: "dur_ns", title: "Duration", unit: Unit::Time, help, cell }
}

/// The column "Mean".
#[must_use]
pub const fn mean_ns<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "Total / launches.";
    Column { key: "mean_ns", title: "Mean", unit: Unit::Time, help, cell }
}

/// The column "Max".
#[must_use]
pub const fn max_ns<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "Longest launch.";
    Column { key: "max_ns", title: "Max", unit: Unit::Time, help, cell }
}

/// Streams that a cell lists before it counts the rest.
const LISTED_STREAMS: usize = 6;

/// The streams of a row, as a cell lists them.
#[must_use]
pub fn list_streams(streams: &[String]) -> Cell<'_> {
    let listed = streams.len().min(LISTED_STREAMS);
    let mut text = streams[..listed].join(", ");
    if listed < streams.len() {
        text.push_str(&format!(" and {} more", streams.len() - listed));
    }
    Cell::from(text)
}

/// The column "Streams".
#[must_use]
pub const fn streams<R>(cell: fn(&R) -> Cell) -> Column<R> {
    let help = "Streams of its launches; device:stream if the trace has several devices.";
    Column { key: "streams", title: "Streams", unit: Unit::Text, help, cell }
}

/// The column "Median".
#[must_use]
pub const fn p50_ns<R>(help: &'static str, cell: fn(&R) -> Cell) -> Column<R> {
    Column { key: "p50_ns", title: "Median", unit: Unit::Time, help, cell }
}
