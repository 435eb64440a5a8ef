//! A set of sequences, as ranges: what a fetch claimed is usually one range, whatever its length.

use rheo_core::Sequence;

/// Ranges, inclusive at both ends, ascending, apart from each other by at least one sequence.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sequences(Vec<(u64, u64)>);

impl Sequences {
    /// From ranges as [`ranges`](Self::ranges) gives them; `None` if they are no such ranges.
    pub(crate) fn from_ranges(ranges: Vec<(u64, u64)>) -> Option<Self> {
        let is_forward = ranges.iter().all(|(first, last)| first <= last);
        let is_apart = ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
        (is_forward && is_apart).then_some(Self(ranges))
    }

    pub(crate) fn ranges(&self) -> &[(u64, u64)] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(crate) fn first(&self) -> Option<Sequence> {
        self.0.first().map(|(first, _)| sequence(*first))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Sequence> {
        let each = self.0.iter().flat_map(|(first, last)| *first..=*last);
        each.map(sequence)
    }

    pub(crate) fn contains(&self, sequence: Sequence) -> bool {
        self.find(sequence.get()).is_ok()
    }

    pub(crate) fn insert(&mut self, sequence: Sequence) {
        let n = sequence.get();
        let Err(at) = self.find(n) else {
            return;
        };
        let joins_left = at > 0 && self.0[at - 1].1 + 1 == n;
        let joins_right = at < self.0.len() && n + 1 == self.0[at].0;
        match (joins_left, joins_right) {
            (true, true) => {
                self.0[at - 1].1 = self.0[at].1;
                self.0.remove(at);
            }
            (true, false) => self.0[at - 1].1 = n,
            (false, true) => self.0[at].0 = n,
            (false, false) => self.0.insert(at, (n, n)),
        }
    }

    /// Whether it was in it.
    pub(crate) fn remove(&mut self, sequence: Sequence) -> bool {
        let n = sequence.get();
        let Ok(at) = self.find(n) else {
            return false;
        };
        let (first, last) = self.0[at];
        match (first == n, last == n) {
            (true, true) => {
                self.0.remove(at);
            }
            (true, false) => self.0[at].0 = n + 1,
            (false, true) => self.0[at].1 = n - 1,
            (false, false) => {
                self.0[at].1 = n - 1;
                self.0.insert(at + 1, (n + 1, last));
            }
        }
        true
    }

    /// Removes all above a sequence.
    pub(crate) fn remove_above(&mut self, sequence: Sequence) {
        let n = sequence.get();
        self.0.retain(|(first, _)| *first <= n);
        if let Some((_, last)) = self.0.last_mut() {
            *last = (*last).min(n);
        }
    }

    /// The range that has it, or where one would be.
    fn find(&self, n: u64) -> Result<usize, usize> {
        let at = self.0.partition_point(|(_, last)| *last < n);
        match self.0.get(at) {
            Some((first, _)) if *first <= n => Ok(at),
            _ => Err(at),
        }
    }
}

fn sequence(number: u64) -> Sequence {
    Sequence::new(number).unwrap_or(Sequence::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_a_set_whatever_is_done_to_it() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut sequences, mut set) = (Sequences::default(), BTreeSet::new());
            for _ in 0..80 {
                let n = random.u64(0..24);
                match random.u32(0..9) {
                    0..=3 => {
                        sequences.insert(sequence(n));
                        set.insert(n);
                    }
                    4..=7 => assert_eq!(sequences.remove(sequence(n)), set.remove(&n)),
                    _ => {
                        sequences.remove_above(sequence(n));
                        set.retain(|other| *other <= n);
                    }
                }
                let all: Vec<u64> = sequences.iter().map(Sequence::get).collect();
                assert_eq!(all, set.iter().copied().collect::<Vec<_>>(), "seed {seed}");
                assert_eq!(sequences.len(), set.len() as u64);
                assert_eq!(sequences.contains(sequence(n)), set.contains(&n));
                let again = Sequences::from_ranges(sequences.ranges().to_vec());
                assert_eq!(again, Some(sequences.clone()), "seed {seed}");
            }
        }
    }

    #[test]
    fn ranges_that_touch_or_go_back_are_none() {
        for bad in [vec![(2, 1)], vec![(1, 2), (3, 4)], vec![(5, 6), (1, 2)]] {
            assert_eq!(Sequences::from_ranges(bad), None);
        }
    }
}
