//! Tables that classify GPU kernels by name: what a kernel computes ([`Category`]), its library
//! ([`Family`]), and other facts in its name ([`facts()`], [`architectures`]).
//!
//! Constraints of this crate:
//!
//! * no dependencies, no I/O, no state except indexes built from constant tables on first use;
//! * the same name always gives the same result, so callers may cache by name (a trace has at most a few
//!   thousand distinct names);
//! * knowledge is in tables: rules in `rules/`, libraries in `family.rs`, devices in `architectures.rs`.
//!   The code only matches.

#![warn(unreachable_pub)]

pub mod architectures;
mod category;
mod copies;
mod cpu_op;
pub mod cpu_work;
pub mod devices;
pub mod facts;
mod family;
pub mod fuse_patterns;
mod head;
mod host_link;
mod inductor;
pub mod kernel_choice;
pub mod known_code;
mod layout;
mod mangled;
mod pattern;
pub mod python;
pub mod remedies;
mod rules;

pub use category::{Category, OverlapClass};
pub use copies::{CopyRoute, copy_route, is_pageable, is_pinned};
pub use cpu_op::{category_of_cpu_op, op_family, samples};
pub use facts::{
    NameFacts, architecture, facts, is_f32_convolution_without_tensor_cores,
    is_f32_without_tensor_cores,
};
pub use family::Family;
pub use head::head;
pub use host_link::host_link_gb_per_s;
pub use inductor::is_bare_inductor_name;
pub use layout::{is_channels_first, is_group_norm};

/// What the file's raw category says a GPU event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawKind {
    /// `kernel`.
    Kernel,
    /// `gpu_memcpy`, `memcpy`.
    Memcpy,
    /// `gpu_memset`, `memset`.
    Memset,
}

/// Whose runtime the trace comes from. Kernel names alone are not always enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Platform {
    /// NVIDIA.
    Cuda,
    /// AMD.
    Rocm,
    /// Not known.
    #[default]
    Unknown,
}

/// What a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// What it does.
    pub category: Category,
    /// Where it comes from.
    pub family: Family,
    /// Which rule said so; empty for [`Category::Other`].
    pub rule: &'static str,
}

/// Classifies a GPU event by its name.
#[must_use]
#[inline(never)]
pub fn classify(raw: RawKind, name: &str, platform: Platform) -> Class {
    match raw {
        RawKind::Memcpy => {
            return Class {
                category: Category::Memcpy,
                family: Family::Runtime,
                rule: "memcpy.raw",
            };
        }
        RawKind::Memset => {
            return Class {
                category: Category::Memset,
                family: Family::Runtime,
                rule: "memset.raw",
            };
        }
        RawKind::Kernel => {}
    }
    let name = head::without_decoration(name);
    let lower = name.to_ascii_lowercase();
    let family = family::of_name(&lower, platform);
    if let Some((category, rule)) = inductor::classify(&lower) {
        return Class { category, family, rule };
    }
    let (head, whole) = head::head_and_whole(name);
    match rules::first(&head, &whole) {
        Some(rule) => Class { category: rule.category, family, rule: rule.id },
        None => Class { category: Category::Other, family, rule: "" },
    }
}
