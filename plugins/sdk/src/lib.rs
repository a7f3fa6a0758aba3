//! Write stages and summarizers for Foreshorten in Rust.
//!
//! ```
//! use foreshorten_plugin::{Pass, Stage};
//!
//! /// Clears results of more than 10,000 bytes.
//! struct ClearLong;
//!
//! impl Stage for ClearLong {
//!     fn plan(pass: &mut impl Pass) -> Result<(), String> {
//!         let sizes = pass.sizes(0, u32::MAX);
//!         let long: Vec<u32> = (0u32..).zip(&sizes).filter(|(_, size)| **size > 10_000).map(|(entry, _)| entry).collect();
//!         // Codes, one an entry: 0 accepted. What cannot be cleared is refused, and that is no error.
//!         pass.clear(&long);
//!         Ok(())
//!     }
//! }
//!
//! foreshorten_plugin::stage!(ClearLong);
//! ```
//!
//! `foreshorten plugin build` makes a component of it. Nothing else is needed: no dependencies, no bindings generator.
//! [`fake`] has a host for unit tests. What a plugin uses of [`Pass`] is what it imports.
//!
//! A call is one fresh instance: statics do not survive it ([`Pass::store_memo`] does), and freed memory is not used again.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![warn(missing_docs)]

extern crate alloc;

pub mod fake;
mod host;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod wasm;

pub use alloc::{string::String, vec::Vec};
pub use host::{Code, History, Kind, Pass, Stage, Summarizer, Task, mark};

/// Exports a [`Stage`].
#[macro_export]
macro_rules! stage {
    ($stage:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            #[unsafe(export_name = "foreshorten:plugin/stage-api@0.1.0#check")]
            extern "C" fn check() -> *const $crate::wasm::Verdict {
                $crate::wasm::verdict(<$stage as $crate::Stage>::check(&$crate::wasm::config()))
            }
            #[unsafe(export_name = "foreshorten:plugin/stage-api@0.1.0#plan")]
            extern "C" fn plan() -> *const $crate::wasm::Verdict {
                $crate::wasm::verdict(<$stage as $crate::Stage>::plan(&mut $crate::wasm::Host))
            }
        };
    };
}

/// Exports a [`Summarizer`].
#[macro_export]
macro_rules! summarizer {
    ($summarizer:ty) => {
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            #[unsafe(export_name = "foreshorten:plugin/summarizer-api@0.1.0#check")]
            extern "C" fn check() -> *const $crate::wasm::Verdict {
                $crate::wasm::verdict(<$summarizer as $crate::Summarizer>::check(&$crate::wasm::config()))
            }
            #[unsafe(export_name = "foreshorten:plugin/summarizer-api@0.1.0#step")]
            extern "C" fn step() -> *const $crate::wasm::Verdict {
                $crate::wasm::verdict(<$summarizer as $crate::Summarizer>::step(&mut $crate::wasm::Host))
            }
        };
    };
}
