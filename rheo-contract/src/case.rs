//! What a case is: a name, the rule it checks, what it needs, and a function.

use std::future::Future;
use std::pin::Pin;

use rheo_core::{Capabilities, Gate, Level, Rule};

use crate::expect::Outcome;
use crate::fixture::Fixture;
use crate::harness::ClockControl;

/// The groups whose cases generate what they try.
const GENERATED: &[&str] = &["histories", "races", "cancellation", "faults", "crashes"];

/// One case of the suite.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    group: &'static str,
    rule: &'static str,
    name: &'static str,
    needs: &'static [Gate],
    lacks: Option<Gate>,
    is_alone: bool,
    needs_optional_part: bool,
    sets_the_clock: bool,
    cause: &'static str,
    run: fn(Fixture) -> CaseFuture,
}

pub(crate) type CaseFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

impl Case {
    pub(crate) const fn new(
        rule: &'static str,
        name: &'static str,
        cause: &'static str,
        run: fn(Fixture) -> CaseFuture,
    ) -> Self {
        Self {
            group: "",
            rule,
            name,
            needs: &[],
            lacks: None,
            is_alone: false,
            needs_optional_part: false,
            sets_the_clock: false,
            cause,
            run,
        }
    }

    /// Runs only where all of these are declared, beyond what the rule itself needs.
    pub(crate) const fn needs(mut self, gates: &'static [Gate]) -> Self {
        self.needs = gates;
        self
    }

    /// Runs only where this is not declared.
    pub(crate) const fn lacks(mut self, gate: Gate) -> Self {
        self.lacks = Some(gate);
        self
    }

    /// Runs while no other case does.
    pub(crate) const fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// Whether no other case may run meanwhile.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Has nothing to try where the harness lacks a part that is not required.
    pub(crate) const fn needs_optional_part(mut self) -> Self {
        self.needs_optional_part = true;
        self
    }

    /// Tries nothing unless the suite can put the clock where it likes: back, or to the end of time.
    pub(crate) const fn sets_the_clock(mut self) -> Self {
        self.sets_the_clock = true;
        self
    }

    pub(crate) const fn in_group(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }

    /// The group of guarantees it belongs to.
    pub fn group(&self) -> &'static str {
        self.group
    }

    /// Whether it generates what it tries (random histories, races, faults, dropped futures …), so
    /// that it takes a budget, and the more it tries the more it finds.
    pub fn is_generated(&self) -> bool {
        is_generated(self.group)
    }

    /// Whether it may be not exercised, for lack of a part of the harness that is not required.
    pub(crate) fn may_lack_a_part(&self) -> bool {
        self.needs_optional_part || self.is_generated()
    }

    /// Whether there is anything to try where the time is that one's: a case that puts the clock back
    /// tries nothing where the clock is the store's own.
    pub fn is_exercised_by(&self, clock: ClockControl) -> bool {
        clock == ClockControl::Suite || !self.sets_the_clock
    }

    /// The id of the rule it checks.
    pub fn rule_id(&self) -> &'static str {
        self.rule
    }

    /// The rule it checks.
    ///
    /// # Panics
    ///
    /// Never: a test of this crate demands that every case has a rule.
    pub fn rule(&self) -> &'static Rule {
        match Rule::find(self.rule) {
            Some(rule) => rule,
            None => panic!(
                "case {} names rule {}, which does not exist",
                self.name, self.rule
            ),
        }
    }

    /// Whether a failure fails the certification.
    pub fn level(&self) -> Level {
        self.rule().level
    }

    /// `group::RULE::name`, as in listings, filters and certificates.
    pub fn full_name(&self) -> String {
        format!("{}::{}::{}", self.group, self.rule, self.name)
    }

    /// What usually makes a backend fail here.
    pub fn usual_cause(&self) -> &'static str {
        self.cause
    }

    /// What must be declared for it to run.
    pub fn gates(&self) -> impl Iterator<Item = Gate> {
        self.rule()
            .gate
            .into_iter()
            .chain(self.needs.iter().copied())
    }

    /// Whether and how it runs against a backend that declares this.
    pub fn applies_to(&self, capabilities: &Capabilities) -> Applies {
        if self
            .lacks
            .is_some_and(|gate| gate.is_declared(capabilities))
        {
            return Applies::No;
        }
        match self.gates().find(|gate| !gate.is_declared(capabilities)) {
            Some(gate) => Applies::NotDeclared(gate),
            None => Applies::Runs,
        }
    }

    pub(crate) fn start(&self, fixture: Fixture) -> CaseFuture {
        (self.run)(fixture)
    }
}

/// Whether the cases of a group generate what they try.
pub(crate) fn is_generated(group: &str) -> bool {
    GENERATED.contains(&group)
}

/// Whether a case is part of a certification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// It runs.
    Runs,
    /// It would need this, which is not declared; it is listed as such (CAP-4).
    NotDeclared(Gate),
    /// It checks what happens without something that is declared: there is nothing to check.
    No,
}

/// `case!("RULE" => function, "what usually causes a failure")`.
macro_rules! case {
    ($rule:literal => $name:ident, $cause:literal $(,)?) => {
        $crate::case::Case::new($rule, stringify!($name), $cause, |fixture| {
            Box::pin($name(fixture))
        })
    };
}
pub(crate) use case;
