//! Where a copy goes, as its name says.

/// From where to where a copy runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyRoute {
    /// From the host's memory to a device's.
    HostToDevice,
    /// From a device's memory to the host's.
    DeviceToHost,
    /// Within one device.
    DeviceToDevice,
    /// From one device to another.
    PeerToPeer,
    /// The name does not say.
    Unknown,
}

/// Words of a name in lower case without spaces and underscores, and the route they mean. Sources: Kineto
/// (`Memcpy HtoD (Pageable -> Device)`), roctracer (`CopyHostToDevice`), rocprofiler
/// (`MEMORY_COPY_HOST_TO_DEVICE`).
const ROUTES: &[(&str, CopyRoute)] = &[
    ("htod", CopyRoute::HostToDevice),
    ("hosttodevice", CopyRoute::HostToDevice),
    ("dtoh", CopyRoute::DeviceToHost),
    ("devicetohost", CopyRoute::DeviceToHost),
    ("dtod", CopyRoute::DeviceToDevice),
    ("devicetodevice", CopyRoute::DeviceToDevice),
    ("ptop", CopyRoute::PeerToPeer),
    ("peertopeer", CopyRoute::PeerToPeer),
];

/// The route of a copy with this name.
#[must_use]
pub fn copy_route(name: &str) -> CopyRoute {
    let plain: String =
        name.chars().filter(|c| !matches!(c, ' ' | '_')).map(|c| c.to_ascii_lowercase()).collect();
    let found = ROUTES.iter().find(|(words, _)| plain.contains(words));
    found.map_or(CopyRoute::Unknown, |(_, route)| *route)
}

/// Whether the name says that one side is pageable host memory, for which no copy is asynchronous.
#[must_use]
pub fn is_pageable(name: &str) -> bool {
    name.to_ascii_lowercase().contains("pageable")
}

/// Whether the name says that the host side is pinned memory. (ROCm's names do not say.)
#[must_use]
pub fn is_pinned(name: &str) -> bool {
    name.to_ascii_lowercase().contains("pinned")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_producer_says_the_route_in_its_own_words() {
        for (name, route) in [
            ("Memcpy HtoD (Pageable -> Device)", CopyRoute::HostToDevice),
            ("Memcpy DtoH (Device -> Pinned)", CopyRoute::DeviceToHost),
            ("Memcpy DtoD (Device -> Device)", CopyRoute::DeviceToDevice),
            ("Memcpy PtoP (Device -> Device)", CopyRoute::PeerToPeer),
            ("CopyHostToDevice", CopyRoute::HostToDevice),
            ("MEMORY_COPY_DEVICE_TO_HOST", CopyRoute::DeviceToHost),
            ("__amd_rocclr_copyBuffer", CopyRoute::Unknown),
        ] {
            assert_eq!(copy_route(name), route, "{name}");
        }
        assert!(is_pageable("Memcpy HtoD (Pageable -> Device)"));
        assert!(!is_pageable("Memcpy HtoD (Host -> Device)"));
        assert!(is_pinned("Memcpy DtoH (Device -> Pinned)"));
        assert!(!is_pinned("Memcpy HtoD (Host -> Device)") && !is_pinned("CopyHostToDevice"));
    }
}
