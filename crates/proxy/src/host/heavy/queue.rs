//! A queue in which tenants take turns.

use std::collections::{BTreeSet, HashMap, VecDeque};

/// What is decided by the kind of work. Each class gets a share of the threads by its weight while several wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    SmallUnderWay,
    SmallNew,
    LargeUnderWay,
    LargeNew,
}

impl Class {
    const ALL: [Class; 4] = [Class::SmallUnderWay, Class::SmallNew, Class::LargeUnderWay, Class::LargeNew];

    pub(super) fn is_small(self) -> bool {
        match self {
            Class::SmallUnderWay | Class::SmallNew => true,
            Class::LargeUnderWay | Class::LargeNew => false,
        }
    }

    fn weight(self) -> u64 {
        match self {
            Class::SmallUnderWay => 16,
            Class::SmallNew => 4,
            Class::LargeUnderWay => 4,
            Class::LargeNew => 1,
        }
    }
}

/// Start-time fair queueing, twice: among classes by weight, and within a class among tenants. Whoever has received the least work comes
/// next, and one who comes back after a pause gets nothing for the time in which it did not ask.
#[derive(Debug)]
pub(super) struct Queue<J> {
    classes: [Waiting<J>; 4],
    /// The virtual time of each class, and the one that was served last.
    served: [u64; 4],
    clock: u64,
    length: usize,
}

#[derive(Debug)]
struct Waiting<J> {
    tenants: HashMap<u64, VecDeque<(u64, J)>>,
    /// Tenants by their virtual time.
    order: BTreeSet<(u64, u64)>,
    clock: u64,
}

/// The cost of the smallest work, so that many tiny jobs are not free.
const MIN_COST: u64 = 16 * 1024;

impl<J> Default for Queue<J> {
    fn default() -> Queue<J> {
        Queue { classes: Default::default(), served: [0; 4], clock: 0, length: 0 }
    }
}

impl<J> Default for Waiting<J> {
    fn default() -> Waiting<J> {
        Waiting { tenants: HashMap::new(), order: BTreeSet::new(), clock: 0 }
    }
}

impl<J> Queue<J> {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn push(&mut self, tenant: u64, class: Class, bytes: usize, job: J) {
        let index = class as usize;
        if self.classes[index].order.is_empty() {
            self.served[index] = self.served[index].max(self.clock);
        }
        self.classes[index].push(tenant, (bytes as u64).max(MIN_COST), job);
        self.length += 1;
    }

    /// Takes the next job, or the next small one.
    pub(super) fn pop(&mut self, is_small: bool) -> Option<J> {
        let waits = |class: &Class| !self.classes[*class as usize].order.is_empty();
        let wanted = |class: &Class| class.is_small() || !is_small;
        let next = Class::ALL
            .into_iter()
            .filter(wanted)
            .filter(waits)
            .min_by_key(|class| self.served[*class as usize])?;
        let index = next as usize;
        let (cost, job) = self.classes[index].pop()?;
        self.clock = self.clock.max(self.served[index]);
        self.served[index] += cost * 16 / next.weight();
        self.length -= 1;
        Some(job)
    }
}

impl<J> Waiting<J> {
    fn push(&mut self, tenant: u64, cost: u64, job: J) {
        let jobs = self.tenants.entry(tenant).or_default();
        if jobs.is_empty() {
            self.order.insert((self.clock, tenant));
        }
        jobs.push_back((cost, job));
    }

    fn pop(&mut self) -> Option<(u64, J)> {
        let (served, tenant) = self.order.pop_first()?;
        self.clock = served;
        let jobs = self.tenants.get_mut(&tenant)?;
        let (cost, job) = jobs.pop_front()?;
        if jobs.is_empty() {
            self.tenants.remove(&tenant);
        } else {
            self.order.insert((served + cost, tenant));
        }
        Some((cost, job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn drained(queue: &mut Queue<char>, is_small: bool) -> String {
        std::iter::from_fn(|| queue.pop(is_small)).collect()
    }

    #[test]
    fn tenants_take_turns_by_the_size_of_their_work() {
        let mut queue = Queue::default();
        for job in ['a', 'b', 'c', 'd'] {
            queue.push(1, Class::LargeNew, 1_000 * KIB, job);
        }
        for job in ['w', 'x', 'y', 'z'] {
            queue.push(2, Class::LargeNew, 500 * KIB, job);
        }
        assert_eq!(queue.len(), 8);
        let order = drained(&mut queue, false);
        // For each body of the one, two of the other, however much was queued first.
        assert!(order.find('z') < order.find('d'), "{order}");
        assert!(order.find('w') < order.find('b'), "{order}");
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn conversations_under_way_come_first_and_new_ones_still_come() {
        let mut queue = Queue::default();
        for _ in 0..20 {
            queue.push(1, Class::SmallNew, 100 * KIB, 'n');
            queue.push(2, Class::SmallUnderWay, 100 * KIB, 'u');
        }
        let order = drained(&mut queue, false);
        assert!(order[..10].matches('u').count() >= 7, "{order}");
        assert!(order[..10].contains('n'), "{order}");
    }

    #[test]
    fn small_work_does_not_wait_behind_large_bodies() {
        let mut queue = Queue::default();
        for _ in 0..5 {
            queue.push(1, Class::LargeUnderWay, 32_000 * KIB, 'L');
        }
        for _ in 0..5 {
            queue.push(2, Class::SmallNew, 20 * KIB, 's');
        }
        assert!(drained(&mut queue, false)[..6].matches('s').count() == 5);
        queue.push(1, Class::LargeNew, 1_000 * KIB, 'L');
        assert_eq!(queue.pop(true), None);
        assert_eq!(queue.pop(false), Some('L'));
    }

    #[test]
    fn a_tenant_that_pauses_saves_nothing_up() {
        let mut queue = Queue::default();
        for _ in 0..10 {
            queue.push(1, Class::LargeNew, 1_000 * KIB, 'a');
        }
        assert_eq!((0..5).filter_map(|_| queue.pop(false)).collect::<String>(), "aaaaa");
        for _ in 0..10 {
            queue.push(2, Class::LargeNew, 1_000 * KIB, 'b');
        }
        let order = drained(&mut queue, false);
        assert!(order[..6].contains('a') && order[..6].matches('b').count() <= 4, "{order}");
    }
}
