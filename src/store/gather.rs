//! Look-ups that go together.
//!
//! To look a row up by its key takes a database in another process a few microseconds, and to switch there and back ten times as
//! long. So whoever asks while such a look-up is under way waits for it to end, and all who wait go together in the next one.
//! Who asks alone asks at once.
//!
//! Called by `sql`. Guarantees: a look-up begins after everyone who shares it has asked, so that nobody is told of anything older
//! than if he had asked alone; nobody waits for one that takes longer than [`PATIENCE`], but asks beside it; whoever goes away
//! takes nothing from those who stay, and when all have gone the look-up ends.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use scopeguard::guard;
use tokio::time::timeout;

use super::lock::lock;

/// How long a look-up waits for the one before it: long beside what one takes, short beside what a person notices.
const PATIENCE: Duration = Duration::from_millis(5);

/// The most keys that go together.
const MOST: usize = 100;

/// Look-ups of several kinds, of which those of one kind can go together, and their answers.
pub(super) struct Gather<K, A>(Mutex<HashMap<K, Batch<A>>>);

/// The newest look-up of a kind.
struct Batch<A> {
    keys: Arc<Keys>,
    answer: WeakShared<BoxFuture<'static, A>>,
}

/// What a look-up is for; nothing more once it has begun.
struct Keys(Mutex<Option<BTreeSet<String>>>);

impl Keys {
    fn add(&self, key: &str) -> bool {
        match &mut *lock(&self.0) {
            Some(keys) if keys.len() < MOST => {
                keys.insert(key.to_owned());
                true
            }
            _ => false,
        }
    }

    fn begin(&self) -> BTreeSet<String> {
        lock(&self.0).take().unwrap_or_default()
    }
}

impl<K, A> Default for Gather<K, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K, A> Gather<K, A>
where
    K: Clone + Eq + Hash + Send + 'static,
    A: Clone + Send + Sync + 'static,
{
    /// The answer of a look-up for this key and for whatever others are asked for meanwhile.
    pub fn ask<F>(
        self: &Arc<Self>,
        kind: K,
        key: &str,
        look_up: impl FnOnce(BTreeSet<String>) -> F + Send + 'static,
    ) -> Shared<BoxFuture<'static, A>>
    where
        F: Future<Output = A> + Send + 'static,
    {
        let mut newest = lock(&self.0);
        let former = match newest.get(&kind) {
            Some(batch) => match batch.answer.upgrade() {
                Some(answer) if batch.keys.add(key) => return answer,
                other => other,
            },
            None => None,
        };
        let keys = Arc::new(Keys(Mutex::new(Some(BTreeSet::from([key.to_owned()])))));
        let ended = guard((self.clone(), kind.clone(), keys.clone()), |(gather, kind, keys)| gather.forget(&kind, &keys));
        let answer = async move {
            let (_, _, keys) = &*ended;
            if let Some(former) = former {
                timeout(PATIENCE, former).await.ok();
            }
            look_up(keys.begin()).await
        };
        let answer = answer.boxed().shared();
        if let Some(weak) = answer.downgrade() {
            newest.insert(kind, Batch { keys, answer: weak });
        }
        answer
    }

    fn forget(&self, kind: &K, keys: &Arc<Keys>) {
        let mut newest = lock(&self.0);
        if newest.get(kind).is_some_and(|batch| Arc::ptr_eq(&batch.keys, keys)) {
            newest.remove(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures_util::{future::join_all, poll};
    use tokio::sync::oneshot;

    use super::*;

    type Asked = Arc<Mutex<VecDeque<(Vec<String>, oneshot::Sender<u32>)>>>;

    /// Asks for a key; what is looked up waits in `asked` for its answer, 0 if it is never given one.
    fn ask(gather: &Arc<Gather<&'static str, u32>>, asked: &Asked, kind: &'static str, key: &str) -> Shared<BoxFuture<'static, u32>> {
        let asked = asked.clone();
        gather.ask(kind, key, move |keys| async move {
            let (answer, answered) = oneshot::channel();
            lock(&asked).push_back((keys.into_iter().collect(), answer));
            answered.await.unwrap_or(0)
        })
    }

    fn next(asked: &Asked) -> (Vec<String>, oneshot::Sender<u32>) {
        lock(asked).pop_front().expect("nothing is looked up")
    }

    /// The same, begun: with what it looks up, and what it is to be answered.
    async fn begun(
        gather: &Arc<Gather<&'static str, u32>>,
        asked: &Asked,
        key: &str,
    ) -> (Shared<BoxFuture<'static, u32>>, Vec<String>, oneshot::Sender<u32>) {
        let mut first = ask(gather, asked, "k", key);
        assert!(poll!(&mut first).is_pending());
        let (keys, answer) = next(asked);
        (first, keys, answer)
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_while_one_is_under_way_goes_with_the_next() {
        let (gather, asked) = (Arc::new(Gather::default()), Asked::default());
        let (first, keys, answer) = begun(&gather, &asked, "a").await;
        assert_eq!(keys, ["a"]);
        // The same key too: what is under way may have begun before what is asked for was written.
        let mut others: Vec<_> = ["a", "b", "a"].map(|key| ask(&gather, &asked, "k", key)).into();
        for other in &mut others {
            assert!(poll!(other).is_pending());
        }
        assert!(lock(&asked).is_empty());
        // Another kind waits for none of them.
        let mut another = ask(&gather, &asked, "l", "a");
        assert!(poll!(&mut another).is_pending());
        next(&asked).1.send(9).unwrap();
        assert_eq!(another.await, 9);
        answer.send(1).unwrap();
        assert_eq!(first.await, 1);
        for other in &mut others {
            assert!(poll!(other).is_pending());
        }
        let (keys, answer) = next(&asked);
        assert_eq!(keys, ["a", "b"]);
        answer.send(2).unwrap();
        assert_eq!(join_all(others).await, [2, 2, 2]);
        assert!(lock(&asked).is_empty() && lock(&gather.0).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_is_not_waited_for() {
        let (gather, asked) = (Arc::new(Gather::default()), Asked::default());
        let (stuck, _, never) = begun(&gather, &asked, "a").await;
        let second = tokio::spawn(ask(&gather, &asked, "k", "b"));
        tokio::time::sleep(PATIENCE * 2).await;
        let (keys, answer) = next(&asked);
        assert_eq!(keys, ["b"]);
        answer.send(2).unwrap();
        assert_eq!(second.await.unwrap(), 2);
        never.send(1).unwrap();
        assert_eq!(stuck.await, 1);
        assert!(lock(&gather.0).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_takes_nothing_along() {
        let (gather, asked) = (Arc::new(Gather::default()), Asked::default());
        // Who began a look-up goes while others wait for it: it is brought to its end by them.
        let (first, _, answer) = begun(&gather, &asked, "a").await;
        let (mut second, mut third) = (ask(&gather, &asked, "k", "b"), ask(&gather, &asked, "k", "c"));
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        drop(first);
        assert!(!answer.is_closed());
        answer.send(1).unwrap();
        assert!(poll!(&mut second).is_pending());
        let (keys, answer) = next(&asked);
        assert_eq!(keys, ["b", "c"]);
        drop(second);
        answer.send(2).unwrap();
        assert_eq!(third.await, 2);
        // When all have gone it is dropped, begun or not.
        let waiting = ask(&gather, &asked, "l", "a");
        let (under_way, _, answer) = begun(&gather, &asked, "a").await;
        drop((under_way, waiting));
        assert!(answer.is_closed() && lock(&asked).is_empty() && lock(&gather.0).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_many_goes_with_the_one_after() {
        let (gather, asked) = (Arc::new(Gather::default()), Asked::default());
        let all = join_all((0..=MOST).map(|i| ask(&gather, &asked, "k", &i.to_string())));
        let all = tokio::spawn(all);
        let mut lengths = vec![];
        while lengths.iter().sum::<usize>() <= MOST {
            tokio::task::yield_now().await;
            let Some((keys, answer)) = lock(&asked).pop_front() else { continue };
            lengths.push(keys.len());
            answer.send(1).unwrap();
        }
        assert_eq!(lengths, [MOST, 1]);
        assert_eq!(all.await.unwrap(), vec![1; MOST + 1]);
    }
}
