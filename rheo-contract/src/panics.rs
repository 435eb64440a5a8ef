//! Panics of what runs for a case: noted with the place where they happened.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Mutex, Once, PoisonError};

thread_local! {
    /// What watches this thread, where it works for a case.
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Notes the panics of one case, on whichever of its threads: its own, and those of the tasks that it
/// spawns. What a backend spawns itself runs on threads of all cases, and is not noted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watch(Arc<Mutex<Option<Panic>>>);

/// A panic.
#[derive(Debug, Clone)]
pub(crate) struct Panic {
    text: String,
    /// The file, the line and the column.
    pub(crate) place: String,
    backtrace: String,
    /// Whether it is a case of the suite that panicked, and not the backend.
    pub(crate) is_of_the_suite: bool,
}

/// The folder with the source of this crate, as the compiler names it.
fn of_the_suite() -> &'static str {
    file!().trim_end_matches("panics.rs")
}

impl Watch {
    /// From now on, what panics on this thread is noted here, and not printed.
    pub(crate) fn this_thread(&self) {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                let watch = WATCH.try_with(|watch| watch.borrow().clone());
                match watch.ok().flatten() {
                    Some(watch) => watch.note(Panic::of(info)),
                    None => usual(info),
                }
            }));
        });
        WATCH.set(Some(self.clone()));
    }

    /// Runs something on this thread; a panic becomes its text and place.
    pub(crate) fn caught<T>(&self, run: impl FnOnce() -> T) -> Result<T, String> {
        self.this_thread();
        panic::catch_unwind(AssertUnwindSafe(run)).map_err(|panic| match self.latest() {
            Some(noted) => noted.to_string(),
            None => text_of(&*panic),
        })
    }

    /// The latest panic.
    pub(crate) fn latest(&self) -> Option<Panic> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn note(&self, panic: Panic) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
    }
}

impl Panic {
    fn of(info: &PanicHookInfo<'_>) -> Self {
        let backtrace = Backtrace::capture();
        let captured = backtrace.status() == BacktraceStatus::Captured;
        Self {
            text: text_of(info.payload()),
            is_of_the_suite: info
                .location()
                .is_some_and(|place| place.file().starts_with(of_the_suite())),
            place: info.location().map(ToString::to_string).unwrap_or_default(),
            backtrace: if captured {
                format!("\n{backtrace}")
            } else {
                String::new()
            },
        }
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, at {}{}", self.text, self.place, self.backtrace)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_on_another_thread_is_noted_with_its_place() {
        let watch = Watch::default();
        let watching = watch.clone();
        let ended = std::thread::spawn(move || {
            watching.this_thread();
            panic!("on {}", "purpose")
        });
        assert!(ended.join().is_err());

        let noted = watch.latest().expect("is noted");
        assert!(noted.to_string().starts_with("on purpose, at "), "{noted}");
        assert!(noted.place.contains("src/panics.rs:"), "{}", noted.place);
        assert!(noted.is_of_the_suite);
    }
}
