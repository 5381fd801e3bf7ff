//! What streams are called, and in which order they stand.

use trace::StreamId;

use crate::gpu::Gpu;

/// Numbers by value, then words.
#[must_use]
pub fn natural(id: &str) -> (bool, i64, String) {
    match id.parse::<i64>() {
        Ok(number) => (false, number, String::new()),
        Err(_) => (true, 0, id.to_owned()),
    }
}

/// What to call each stream: its id, with the device's before it when there are several devices.
#[must_use]
pub fn stream_labels(gpu: &Gpu<'_>) -> Vec<((bool, i64, String), String)> {
    let streams = &gpu.trace.streams;
    let several = streams.windows(2).any(|pair| pair[0].device != pair[1].device);
    streams
        .iter()
        .map(|stream| {
            let name = stream.stream.display(&gpu.trace.strings);
            let device = stream.device.display(&gpu.trace.strings);
            let label = if several { format!("{device}:{name}") } else { name.clone() };
            (natural(&name), label)
        })
        .collect()
}

/// The labels of these streams, in natural order.
#[must_use]
pub fn names(streams: &[StreamId], labels: &[((bool, i64, String), String)]) -> Vec<String> {
    let mut found: Vec<_> =
        streams.iter().filter_map(|stream| labels.get(usize::from(stream.0))).collect();
    trace::sort(&mut found);
    found.into_iter().map(|(_, label)| label.clone()).collect()
}
