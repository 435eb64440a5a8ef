//! Where an event stands for a group, and what may be done to it there.

use std::fmt;

use rheo_core::{LeaseId, Reason, Timestamp};

use crate::race::REJECTED;

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum State<'a> {
    /// Not appended yet.
    Missing,
    /// At or below the start.
    Skipped,
    /// Claimable from a moment on, after that many attempts.
    Open {
        attempts: u32,
        from: Moment,
    },
    /// Claimed, by a lease that somebody knows or nobody; expired or not.
    Leased {
        lease: Option<&'a LeaseId>,
        attempt: u32,
        end: Moment,
    },
    Acked,
    Dead {
        attempt: u32,
        death: Death,
    },
}

/// A point in time, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Moment {
    /// Before everything.
    Past,
    At(Timestamp),
    Unknown,
}

/// Why an event was given up on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Death {
    Rejected,
    /// By a retry at the last attempt.
    Retried,
    /// By a lease that expired at the last attempt.
    Expired,
}

/// Something that is done to an event, or seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act<'a> {
    Append,
    /// A fetch gave it.
    Claim {
        lease: &'a LeaseId,
        attempt: u32,
        end: Moment,
    },
    /// A fetch that had no answer claimed it.
    ClaimUnseen,
    /// A settle or renewal was accepted.
    Settle(&'a LeaseId, Then),
    /// A settle or renewal was told that the lease is stale.
    Refuse(&'a LeaseId),
    /// A replay of what is after a sequence, or of chosen events.
    Replay {
        is_chosen: bool,
    },
    /// A reset to a start before it.
    StartBefore,
    /// A reset to a start at it or after it.
    StartAfter,
    /// A reset to the end.
    StartAtTheEnd,
    /// The frontier is at it or above it.
    Pass,
    /// The frontier ends just before it, exactly.
    Stop,
    /// No fetch gives it any more.
    Leave,
    /// The dead letter that there is of it, if there is one.
    Letter(Option<(u32, Option<Death>)>),
}

/// What an accepted settle or renewal leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Acked,
    Rejected,
    /// Claimable from that moment on, or dead.
    Retried(Moment),
    /// Leased until then.
    Renewed(Moment),
}

const NEW: State<'static> = State::Open {
    attempts: 0,
    from: Moment::Past,
};

impl Moment {
    /// Whether it may have come by a time, which may not be known.
    fn may_have_come(self, now: Option<Timestamp>) -> bool {
        match self {
            Self::Past | Self::Unknown => true,
            Self::At(moment) => now.is_none_or(|now| now >= moment),
        }
    }

    fn may_not_have_come(self, now: Option<Timestamp>) -> bool {
        match self {
            Self::Past => false,
            Self::Unknown => true,
            Self::At(moment) => now.is_none_or(|now| now < moment),
        }
    }
}

impl Death {
    /// The one that a reason tells of.
    pub(super) fn of(reason: &Reason) -> Option<Self> {
        let all = [
            (Reason::new(REJECTED), Self::Rejected),
            (Reason::max_attempts(), Self::Retried),
            (Reason::lease_expired(), Self::Expired),
        ];
        let death = all.into_iter().find(|(known, _)| known == reason);
        death.map(|(_, death)| death)
    }
}

impl<'a> State<'a> {
    /// Every state to which something leads that is done at a time; none where it cannot be done.
    pub(super) fn after(self, act: &Act<'a>, now: Option<Timestamp>, most: u32) -> Vec<Self> {
        match *act {
            Act::Append => only(self == Self::Missing, NEW),
            Act::Claim {
                lease,
                attempt,
                end,
            } => only(
                self.claimable(now, most).map(|attempts| attempts + 1) == Some(attempt),
                Self::Leased {
                    lease: Some(lease),
                    attempt,
                    end,
                },
            ),
            Act::ClaimUnseen => {
                let claimed = self.claimable(now, most).map(|attempts| Self::Leased {
                    lease: None,
                    attempt: attempts + 1,
                    end: Moment::Unknown,
                });
                claimed.into_iter().collect()
            }
            Act::Settle(lease, then) => self.settled(lease, then, most).into_iter().collect(),
            Act::Refuse(lease) => only(!self.is_leased_by(lease), self),
            Act::Replay { is_chosen } => match self {
                Self::Missing => only(!is_chosen, self),
                _ => vec![NEW],
            },
            Act::StartBefore => vec![if self == Self::Missing { self } else { NEW }],
            Act::StartAfter => only(self != Self::Missing, Self::Skipped),
            Act::StartAtTheEnd => match self {
                Self::Missing => vec![self],
                _ => vec![Self::Skipped],
            },
            Act::Pass => only(self.is_done(), self),
            Act::Stop => only(!self.is_done(), self),
            Act::Leave => self.left(now, most),
            Act::Letter(letter) => only(self.has_letter(letter), self),
        }
    }

    /// DLQ-3: dead, if its lease may have ended at the last attempt.
    pub(super) fn reaped(self, now: Option<Timestamp>, most: u32) -> Option<Self> {
        match self {
            Self::Leased { attempt, end, .. } if attempt >= most && end.may_have_come(now) => {
                Some(Self::Dead {
                    attempt,
                    death: Death::Expired,
                })
            }
            _ => None,
        }
    }

    /// The attempts so far, where it may be claimed.
    fn claimable(self, now: Option<Timestamp>, most: u32) -> Option<u32> {
        match self {
            Self::Open { attempts, from } if from.may_have_come(now) => Some(attempts),
            Self::Leased { attempt, end, .. } if attempt < most && end.may_have_come(now) => {
                Some(attempt)
            }
            _ => None,
        }
    }

    /// What becomes of it where a fetch finds nothing to give.
    fn left(self, now: Option<Timestamp>, most: u32) -> Vec<Self> {
        match self {
            Self::Missing | Self::Skipped | Self::Acked | Self::Dead { .. } => vec![self],
            Self::Open { from, .. } => only(from.may_not_have_come(now), self),
            Self::Leased { end, .. } => {
                let still = end.may_not_have_come(now).then_some(self);
                still.into_iter().chain(self.reaped(now, most)).collect()
            }
        }
    }

    fn settled(self, by: &LeaseId, then: Then, most: u32) -> Option<Self> {
        let Self::Leased { lease, attempt, .. } = self else {
            return None;
        };
        if lease != Some(by) {
            return None;
        }
        let dead = |death| Self::Dead { attempt, death };
        Some(match then {
            Then::Acked => Self::Acked,
            Then::Rejected => dead(Death::Rejected),
            Then::Retried(_) if attempt >= most => dead(Death::Retried),
            Then::Retried(from) => Self::Open {
                attempts: attempt,
                from,
            },
            Then::Renewed(end) => Self::Leased {
                lease,
                attempt,
                end,
            },
        })
    }

    fn is_leased_by(self, by: &LeaseId) -> bool {
        matches!(self, Self::Leased { lease, .. } if lease == Some(by))
    }

    fn is_done(self) -> bool {
        matches!(self, Self::Skipped | Self::Acked | Self::Dead { .. })
    }

    fn has_letter(self, letter: Option<(u32, Option<Death>)>) -> bool {
        match self {
            Self::Dead { attempt, death } => letter == Some((attempt, Some(death))),
            _ => letter.is_none(),
        }
    }
}

fn only(holds: bool, state: State<'_>) -> Vec<State<'_>> {
    if holds { vec![state] } else { Vec::new() }
}

impl fmt::Display for State<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("not there yet"),
            Self::Skipped => f.write_str("at or below the start"),
            Self::Open { attempts, from } => {
                write!(f, "open{from} after {attempts} attempts")
            }
            Self::Leased { attempt, end, .. } => {
                let end = match end {
                    Moment::At(end) => format!(" until {end}"),
                    Moment::Past | Moment::Unknown => String::new(),
                };
                write!(f, "leased at attempt {attempt}{end}")
            }
            Self::Acked => f.write_str("acked"),
            Self::Dead { attempt, death } => write!(f, "dead at attempt {attempt} ({death})"),
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Past => Ok(()),
            Self::At(moment) => write!(f, " from {moment} on"),
            Self::Unknown => f.write_str(" from some time on"),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rejected => "rejected",
            Self::Retried => "retried at the last attempt",
            Self::Expired => "its lease expired at the last attempt",
        })
    }
}

impl fmt::Display for Act<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append => f.write_str("not to be there yet"),
            Self::Claim { attempt, .. } => {
                write!(f, "to be claimable after {} attempts", attempt - 1)
            }
            Self::ClaimUnseen => f.write_str("to be claimable"),
            Self::Settle(..) => f.write_str("to be leased by that very lease"),
            Self::Refuse(_) => f.write_str("not to be leased by that very lease"),
            Self::Replay { .. } | Self::StartAfter => f.write_str("to be there"),
            Self::StartBefore | Self::StartAtTheEnd => f.write_str("to be anything"),
            Self::Pass | Self::Leave => f.write_str("to be acked, dead, or at or below the start"),
            Self::Stop => f.write_str("to be open or leased"),
            Self::Letter(None) => f.write_str("to be anything but dead"),
            Self::Letter(Some((attempt, death))) => {
                let death = death.map_or("of another reason".to_owned(), |it| it.to_string());
                write!(f, "to be dead at attempt {attempt} ({death})")
            }
        }
    }
}
