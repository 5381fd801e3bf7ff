//! GPU time per device and per stream.

use report::{Cell, Column, Row, Unit};
use serde::Serialize;
use trace::IdToken;

use crate::columns;
use timeline::device::devices;
use timeline::gpu::{Extent, Gpu};
use timeline::percent;
use timeline::streams::natural;

/// One GPU device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceRow {
    /// Its id, as in the args of kernels.
    pub device: String,
    /// Its name from `deviceProperties`, if recorded.
    pub name: Option<String>,
    /// GPU slices.
    pub n_slices: u64,
    /// Kernels among them.
    pub n_kernels: u64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Time during which at least one slice ran.
    pub busy_ns: i64,
    /// Span - busy.
    pub idle_ns: i64,
    /// From the first start to the last end.
    pub span_ns: i64,
    /// Busy time in percent of the span.
    pub busy_pct: f64,
}

/// One GPU stream.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamRow {
    /// The device's id.
    pub device: String,
    /// The stream's id.
    pub stream: String,
    /// GPU slices.
    pub n_slices: u64,
    /// Kernels among them.
    pub n_kernels: u64,
    /// Sum of durations.
    pub total_ns: i64,
    /// Time during which at least one slice ran.
    pub busy_ns: i64,
    /// Busy time in percent of the device's span.
    pub busy_pct: f64,
}

#[inline(never)]
pub(crate) fn streams(gpu: &Gpu<'_>) -> (Vec<DeviceRow>, Vec<StreamRow>) {
    let trace = gpu.trace;
    // Devices in order of first appearance among the streams, which the decoder keeps distinct.
    let mut tokens: Vec<IdToken> = Vec::new();
    let device_of: Vec<usize> = trace
        .streams
        .iter()
        .map(|stream| {
            tokens.iter().position(|token| *token == stream.device).unwrap_or_else(|| {
                tokens.push(stream.device);
                tokens.len() - 1
            })
        })
        .collect();

    let mut by_stream = vec![(Extent::default(), 0_u64); trace.streams.len()];
    let mut by_device = vec![(Extent::default(), 0_u64); tokens.len()];
    gpu.each_slice(|slice| {
        let Some(stream) = slice.stream.map(|id| usize::from(id.0)) else { return };
        let Some(device) = device_of.get(stream) else { return };
        let kernel = u64::from(gpu.is_kernel(&slice));
        for (extent, n_kernels) in [&mut by_stream[stream], &mut by_device[*device]] {
            extent.add(&slice);
            *n_kernels += kernel;
        }
    });

    let known = devices(trace);
    let mut device_rows: Vec<DeviceRow> = tokens
        .iter()
        .zip(&by_device)
        .filter(|(_, (extent, _))| extent.n > 0)
        .map(|(token, (extent, n_kernels))| {
            let device = token.display(&trace.strings);
            DeviceRow {
                name: known
                    .iter()
                    .find(|info| info.id == device)
                    .map(|info| info.name.clone())
                    .filter(|name| !name.is_empty()),
                device,
                n_slices: extent.n,
                n_kernels: *n_kernels,
                total_ns: extent.total_ns,
                busy_ns: extent.busy_ns,
                idle_ns: extent.idle_ns(),
                span_ns: extent.span_ns(),
                busy_pct: percent(extent.busy_ns, extent.span_ns()),
            }
        })
        .collect();
    trace::sort_by_key(&mut device_rows, |row| natural(&row.device));

    let mut stream_rows: Vec<StreamRow> = trace
        .streams
        .iter()
        .zip(&by_stream)
        .zip(&device_of)
        .filter(|((_, (extent, _)), _)| extent.n > 0)
        .map(|((stream, (extent, n_kernels)), device)| StreamRow {
            device: stream.device.display(&trace.strings),
            stream: stream.stream.display(&trace.strings),
            n_slices: extent.n,
            n_kernels: *n_kernels,
            total_ns: extent.total_ns,
            busy_ns: extent.busy_ns,
            busy_pct: percent(extent.busy_ns, by_device[*device].0.span_ns()),
        })
        .collect();
    trace::sort_by_key(&mut stream_rows, |row| (natural(&row.device), natural(&row.stream)));
    (device_rows, stream_rows)
}

impl Row for DeviceRow {
    const SHOWN: &'static [&'static str] =
        &["device", "name", "busy_pct", "busy_ns", "idle_ns", "span_ns", "total_ns", "n_kernels"];

    const COLUMNS: &'static [Column<Self>] = &[
        columns::device("Device id as in the kernels' args; numbered within the process.", |row| {
            row.device.as_str().into()
        }),
        Column {
            key: "name",
            title: "Name",
            unit: Unit::Text,
            help: "Device name from deviceProperties.",
            cell: |row| {
                Cell::or_missing(
                    row.name.clone(),
                    Cell::from,
                    "not recorded: deviceProperties has no entry for this device",
                )
            },
        },
        columns::n_slices(|row| Cell::Count(row.n_slices)),
        columns::n_kernels(|row| Cell::Count(row.n_kernels)),
        columns::total_ns("Summed duration; larger than Busy if slices ran concurrently.", |row| {
            Cell::Ns(row.total_ns)
        }),
        columns::busy_ns("Time during which at least one slice ran.", |row| Cell::Ns(row.busy_ns)),
        Column {
            key: "idle_ns",
            title: "Idle",
            unit: Unit::Time,
            help: "Span - Busy.",
            cell: |row| Cell::Ns(row.idle_ns),
        },
        Column {
            key: "span_ns",
            title: "Span",
            unit: Unit::Time,
            help: "From the first start to the last end on this device.",
            cell: |row| Cell::Ns(row.span_ns),
        },
        columns::busy_pct("Busy in percent of Span.", |row| Cell::Percent(row.busy_pct)),
    ];
}

impl Row for StreamRow {
    const COLUMNS: &'static [Column<Self>] = &[
        columns::device("Device id as in the kernels' args.", |row| row.device.as_str().into()),
        Column {
            key: "stream",
            title: "Stream",
            unit: Unit::Text,
            help: "Stream id.",
            cell: |row| row.stream.as_str().into(),
        },
        columns::n_slices(|row| Cell::Count(row.n_slices)),
        columns::n_kernels(|row| Cell::Count(row.n_kernels)),
        columns::total_ns("Summed duration.", |row| Cell::Ns(row.total_ns)),
        columns::busy_ns("Time during which at least one slice ran on this stream.", |row| {
            Cell::Ns(row.busy_ns)
        }),
        Column {
            key: "busy_pct",
            title: "Busy, share of device span",
            unit: Unit::Percent,
            help: "Busy in percent of the span of the device.",
            cell: |row| Cell::Percent(row.busy_pct),
        },
    ];
}

#[cfg(test)]
mod tests {
    use crate::{Options, analyze};
    use fixture::{Fixture, kernel};

    #[test]
    fn streams_are_kept_apart_and_come_in_natural_order() {
        let mut fixture = Fixture::default();
        fixture.push(kernel("a").at(0, 10).on(1, 10));
        fixture.push(kernel("a").at(5, 10).on(1, 9));
        fixture.push(kernel("a").at(40, 10).on(0, 7));
        fixture.push(kernel("a").at(8, 4).on(1, 10));
        let report = analyze(&fixture.finish(), &Options::default());
        let found: Vec<_> = report
            .streams
            .iter()
            .map(|row| {
                (row.device.as_str(), row.stream.as_str(), row.n_slices, row.total_ns, row.busy_ns)
            })
            .collect();
        assert_eq!(found, [("0", "7", 1, 10, 10), ("1", "9", 1, 10, 10), ("1", "10", 2, 14, 12)]);
        let device = &report.devices[1];
        assert_eq!(
            (device.busy_ns, device.idle_ns, device.span_ns, device.busy_pct),
            (15, 0, 15, 100.0)
        );
    }
}
