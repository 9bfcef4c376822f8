//! A queue of jobs with priorities: workers claim the most urgent job, and a job whose worker died
//! is claimed again by another.
//!
//! It shows keys that are tuples, ranges of them, and `TypedSpace::named`, whose rows may gain
//! fields later. Run it with `cargo run -p muesli-examples --bin job_queue`.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use muesli::{Db, Error, KeyRange, Named, Options, SpaceOptions, Tx, TypedSpace};
use serde::{Deserialize, Serialize};

/// A job is found by its priority first, then by its number: keys are ordered as tuples are.
type Key = (u8, u64);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    task: String,
    /// A field that came later: rows that were written before it was there still read.
    #[serde(default)]
    attempts: u32,
}

#[derive(Clone)]
struct Queue {
    db: Db,
    waiting: TypedSpace<Key, Job, Named>,
    /// Jobs that are worked on, by when their worker is given up on (in milliseconds).
    claimed: TypedSpace<(u64, Key), Job, Named>,
}

impl Queue {
    fn open() -> Result<Queue, Error> {
        let options = Options::default()
            .space("waiting", SpaceOptions::default())
            .space("claimed", SpaceOptions::default());
        let db = Db::open(options)?;
        let (waiting, claimed) = (db.space("waiting")?.named(), db.space("claimed")?.named());
        Ok(Queue { db, waiting, claimed })
    }

    fn add(&self, priority: u8, number: u64, task: String) -> Result<(), Error> {
        let (waiting, job) = (self.waiting, Job { task, attempts: 0 });
        let add = async move |tx: &Tx| waiting.put(tx, &(priority, number), &job).await;
        self.db.blocking().transact(add)
    }

    /// Takes the first job, if there is one, and keeps it for as long as `lease`. Two workers that
    /// take at the same moment read the same first row; one of them then conflicts, and is run
    /// again by `transact`. So no job is taken twice.
    fn claim(&self, lease: Duration) -> Result<Option<(u64, Key, Job)>, Error> {
        let (waiting, claimed) = (self.waiting, self.claimed);
        let until = now() + lease.as_millis() as u64;
        self.db.blocking().transact(async move |tx| {
            let first = waiting.range(tx, KeyRange::all().limit(1)).await?;
            let Some((key, job)) = first.into_iter().next() else { return Ok(None) };
            let job = Job { attempts: job.attempts + 1, ..job };
            waiting.delete(tx, &key).await?;
            claimed.put(tx, &(until, key), &job).await?;
            Ok(Some((until, key, job)))
        })
    }

    /// The job is done. False: its worker took too long, and the job was given to another one.
    fn finish(&self, until: u64, key: Key) -> Result<bool, Error> {
        let claimed = self.claimed;
        self.db.blocking().transact(async move |tx| {
            let is_mine = claimed.get(tx, &(until, key)).await?.is_some();
            claimed.delete(tx, &(until, key)).await?;
            Ok(is_mine)
        })
    }

    /// Gives back the jobs whose lease is over: those whose key begins with an earlier time.
    fn give_back(&self) -> Result<usize, Error> {
        let (waiting, claimed, now) = (self.waiting, self.claimed, now());
        self.db.blocking().transact(async move |tx| {
            let over = KeyRange::of((0, (0, 0))..(now, (0, 0)));
            // A stream: only a page of rows is in memory at a time.
            let (mut rows, mut count) = (claimed.rows(tx, over), 0);
            while let Some(((until, key), job)) = rows.next().await? {
                claimed.delete(tx, &(until, key)).await?;
                waiting.put(tx, &key, &job).await?;
                count += 1;
            }
            Ok(count)
        })
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = Queue::open()?;
    for number in 0..300 {
        let priority = (number % 3) as u8;
        queue.add(priority, number, format!("send letter {number}"))?;
    }
    // A worker that dies: it claims the most urgent job and never finishes it.
    let (_, lost, _) = queue.claim(Duration::ZERO)?.expect("there are 300 jobs");
    thread::sleep(Duration::from_millis(2));
    println!("job {lost:?} was lost; {} given back", queue.give_back()?);

    let worker = |queue: Queue| {
        let mut done = Vec::new();
        while let Some((until, key, job)) = queue.claim(Duration::from_secs(60))? {
            // Here the work would be done.
            if queue.finish(until, key)? {
                done.push((key, job));
            }
        }
        Ok::<_, Error>(done)
    };
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let queue = Queue { db: queue.db.session(), ..queue.clone() };
            thread::spawn(move || worker(queue))
        })
        .collect();
    let mut done = Vec::new();
    for worker in workers {
        let own = worker.join().expect("a worker does not panic")?;
        assert!(own.is_sorted_by_key(|((priority, _), _)| *priority), "urgent ones first");
        done.extend(own);
    }
    done.sort_by_key(|(key, _)| *key);
    done.dedup_by_key(|(key, _)| *key);
    assert_eq!(done.len(), 300, "each job was done, and none twice");
    let again = done.iter().filter(|(_, job)| job.attempts == 2).count();
    assert_eq!(again, 1, "the one that was lost");
    let last = done.last().map(|(_, job)| job.task.as_str());
    println!("4 workers did 300 jobs, the last of them: {}", last.unwrap_or_default());
    queue.db.close();
    Ok(())
}
