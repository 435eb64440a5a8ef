//! The lag while others are at work.

use rheo_core::{Lag, PartitionLag};

use super::{About, Anomaly, Claims, History, claims_of};
use crate::describe::Brief;
use crate::race::{Done, What};

impl History {
    fn lags(&self) -> Vec<(&Done, &Lag)> {
        let lags = self.done.iter().filter_map(|done| match &done.what {
            What::Lag(lag) => Some((done, lag)),
            _ => None,
        });
        lags.collect()
    }

    /// FRN-4, LOG-10: all partitions, no event missed that was there, and none counted that was not.
    pub(super) fn check_lags(&self, found: &mut Vec<Anomaly>) {
        for (done, lag) in self.lags() {
            let partitions = lag.partitions.iter().map(|p| p.partition.number());
            if !partitions.eq((0..).take(self.log.len())) {
                found.push(Anomaly::new(
                    "partition missing, or out of order (FRN-4)",
                    About::default().by(done),
                    format!("all {} partitions, ascending", self.log.len()),
                    lag.brief(),
                ));
            }
            for progress in &lag.partitions {
                self.check_watermark(done, progress, found);
            }
        }
        self.check_last_lag(found);
    }

    /// FRN-3, FRN-4: no progress that was not made and none taken back.
    pub(super) fn check_progress(&self, claims: &Claims<'_>, found: &mut Vec<Anomaly>) {
        let lags = self.lags();
        for (done, lag) in &lags {
            for progress in &lag.partitions {
                let partition = progress.partition.number();
                let is_over = |sequence: &u64| {
                    self.may_be_terminal(claims_of(claims, (partition, *sequence)), done.ended)
                };
                let frontier = progress.frontier.get();
                let log = self.log.get(partition as usize).map_or(0, Vec::len) as u64;
                let most = (1..=log).take_while(is_over).count() as u64;
                if frontier > most {
                    found.push(Anomaly::new(
                        "frontier ahead (FRN-4)",
                        About::place((partition, most + 1)).by(done),
                        format!(
                            "at most {most} in partition {partition}, since no more is settled"
                        ),
                        lag.brief(),
                    ));
                }
                let earlier = lags.iter().filter(|(other, _)| other.ended < done.started);
                let passed = earlier
                    .filter_map(|(by, lag)| Some((by, lag.partition(progress.partition)?.frontier)))
                    .max_by_key(|(_, frontier)| *frontier);
                if let Some((by, passed)) = passed.filter(|(_, it)| progress.frontier < *it) {
                    found.push(Anomaly::new(
                        "frontier moving back (FRN-3)",
                        About::default().and(by).by(done),
                        format!("at least {passed} in partition {partition}, as before"),
                        lag.brief(),
                    ));
                }
            }
        }
    }

    fn check_watermark(&self, done: &Done, progress: &PartitionLag, found: &mut Vec<Anomaly>) {
        let (partition, seen) = (progress.partition, progress.high_watermark.get());
        let least = self.least(done, partition);
        if seen < least {
            found.push(Anomaly::new(
                "high watermark below what was appended (LOG-10)",
                About::place((partition.number(), least)).by(done),
                format!("at least {least} in partition {partition}"),
                seen,
            ));
        }
        let may_be_there = |other: &&Done| match &other.what {
            What::Append(asked, _) => {
                other.started < done.ended && asked.partition == Some(partition)
            }
            _ => false,
        };
        let most = self.done.iter().filter(may_be_there).count() as u64;
        if seen > most {
            found.push(Anomaly::new(
                "high watermark above what was appended (FRN-4)",
                About::place((partition.number(), most + 1)).by(done),
                format!("at most {most} in partition {partition}"),
                seen,
            ));
        }
    }
}
