//! The planner as a component: the functions of `wit/planner.wit` over a [`Compactor`] and the record it reads.
//!
//! Nothing is decided here. What is translated: numbers of kinds, entries, and the pieces of a view.
#![no_std]

extern crate alloc;

mod convert;
mod session;

use alloc::string::String;

use dlmalloc::GlobalDlmalloc;
use foreshorten_core::overflow::{ErrorClass, explain};

/// Made by the makers of the component model from the interface.
#[allow(clippy::all, clippy::pedantic, missing_docs, unsafe_code)]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "planner", generate_all });
}

use bindings::exports::foreshorten::planner::planning;

#[global_allocator]
static HEAP: GlobalDlmalloc = GlobalDlmalloc;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

struct Planner;

impl planning::Guest for Planner {
    type Session = session::Session;

    fn explain_error(status: u16, body: String) -> (bool, Option<u64>) {
        let said = explain((status != 0).then_some(status), &body);
        (matches!(said.class, ErrorClass::Overflow | ErrorClass::PromptPlusOutput), said.window)
    }
}

bindings::export!(Planner with_types_in bindings);
