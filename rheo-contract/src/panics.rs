//! Panics of cases: caught, with the place where they happened.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// Where the last panic of this thread happened, while a case runs on it.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Runs something; a panic becomes its text and place, and is not printed elsewhere.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if WATCHED.get() {
                PLACE.set(Some(place_of(info)));
            } else {
                usual(info);
            }
        }));
    });
    WATCHED.set(true);
    let ran = panic::catch_unwind(AssertUnwindSafe(run));
    WATCHED.set(false);
    ran.map_err(|panic| {
        let place = PLACE.take().unwrap_or_default();
        format!("{}{place}", text_of(&*panic))
    })
}

fn place_of(info: &PanicHookInfo<'_>) -> String {
    let mut place = info
        .location()
        .map_or(String::new(), |location| format!(", at {location}"));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        place.push_str(&format!("\n{backtrace}"));
    }
    place
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "without a message".to_owned()
    }
}
