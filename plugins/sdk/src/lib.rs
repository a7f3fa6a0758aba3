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
//! The same source is a native library, for hosts that allow them: `cargo build --release --features
//! foreshorten-plugin/dylib`. Only then is the library's one symbol there, so that plugins can be linked into one program
//! otherwise, as tests do. A panic comes back as a failure of the call.
//!
//! A call of a component is one fresh instance: statics do not survive it ([`Pass::store_memo`] does), and freed memory is not used again.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![warn(missing_docs)]

extern crate alloc;

#[cfg(all(feature = "dylib", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub mod abi;
pub mod fake;
mod host;
#[cfg(all(feature = "dylib", not(target_arch = "wasm32")))]
#[doc(hidden)]
pub mod native;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod wasm;

pub use alloc::{string::String, vec::Vec};
pub use host::{Code, History, Kind, Pass, Reduction, Stage, Summarizer, Task, mark};

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
        $crate::__native!(STAGE, check_stage, plan, $stage);
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
        $crate::__native!(SUMMARIZER, check_summarizer, step, $summarizer);
    };
}

/// Exports the tables of a native library.
#[cfg(all(feature = "dylib", not(target_arch = "wasm32")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __native {
    ($key:ident, $check:ident, $main:ident, $plugin:ty) => {
        const _: () = {
            static FACTORY: $crate::abi::Factory = $crate::abi::Factory {
                struct_size: ::core::mem::size_of::<$crate::abi::Factory>(),
                check: Some($crate::native::$check::<$plugin>),
                main: Some($crate::native::$main::<$plugin>),
            };
            unsafe extern "C" fn get_factory(key: $crate::abi::Str) -> *const ::core::ffi::c_void {
                // SAFETY: the host lends the key for the time of this call.
                unsafe { $crate::native::factory(key, $crate::abi::$key, &FACTORY) }
            }
            static ENTRY: $crate::abi::Entry =
                $crate::native::entry(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), get_factory);
            #[unsafe(no_mangle)]
            extern "C" fn foreshorten_plugin_entry() -> *const $crate::abi::Entry {
                &raw const ENTRY
            }
        };
    };
}

/// Nothing: this is no native library.
#[cfg(not(all(feature = "dylib", not(target_arch = "wasm32"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! __native {
    ($key:ident, $check:ident, $main:ident, $plugin:ty) => {};
}
