//! Proof of the suite's cases that kill processes, which need a store outside of them: backends with one
//! defect each must be failed by the case that is made for it.
//!
//! This program runs itself: without `RHEO_DEFECT` it starts one run of the group `crashes` per defect,
//! with it it is such a run, whose workers inherit the defect.

#[path = "../../rheo-contract/tests/proof/defect.rs"]
#[expect(dead_code, reason = "the proof uses the rest of it")]
mod defect;
mod harness;
#[path = "../../rheo-contract/tests/proof/journal.rs"]
#[expect(dead_code, reason = "the proof uses the rest of it")]
mod journal;

use std::env;
use std::net::SocketAddr;
use std::process::{Command, ExitCode};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use rheo_contract::{
    Certificate, ClockControl, Harness, HarnessError, Namespace, Opened, Server, Verdict,
};
use rheo_core::{
    Clock, Error, FetchOptions, GroupName, Lease, LeaseDuration, LeaseId, ReadOptions, Result,
    StreamName, async_trait,
};

use crate::defect::{Defect, Real, Wrapped};
use crate::harness::Postgres;

/// A defect by its name, and the case that it dies of.
struct Faulty {
    name: &'static str,
    killer: &'static str,
    says: &'static str,
    defect: fn() -> Box<dyn Defect>,
    /// What is done to the schema of a case, `{schema}`, before its first handle is given.
    sql: &'static str,
}

/// The case that needs `RHEO_POSTGRES_PID_FILE`.
const RESTARTS: &str = "crashes::DUR-1::what_was_confirmed_survives_a_restart_of_the_store";

const FAULTY: &[Faulty] = &[
    Faulty {
        name: "AcksAreWrittenLater",
        killer: "crashes::DUR-1::what_a_killed_process_confirmed_is_there",
        says: "acked",
        defect: || Box::<AcksAreWrittenLater>::default(),
        sql: "",
    },
    Faulty {
        name: "DeliveredIsDone",
        killer: "crashes::DLV-6::what_killed_processes_leave_is_delivered_in_the_end",
        says: "the sequences that nobody got",
        defect: || Box::new(DeliveredIsDone),
        sql: "",
    },
    Faulty {
        name: "AcksEndTheProcess",
        killer: "crashes::DUR-1::what_a_killed_process_confirmed_is_there",
        says: "on purpose",
        defect: || Box::<AcksEndTheProcess>::default(),
        sql: "",
    },
    Faulty {
        name: "ClaimsAreNotLogged",
        killer: RESTARTS,
        says: "Err(StaleLease)",
        defect: || Box::new(NoDefect),
        sql: "ALTER TABLE {schema}.claims SET UNLOGGED",
    },
    Faulty {
        name: "LeasesEndInTheProcess",
        killer: "crashes::DST-2::a_killed_consumer_holds_its_events_no_longer_than_its_lease",
        says: "what comes back when the leases end",
        defect: || Box::new(LeasesEndInTheProcess),
        sql: "",
    },
    Faulty {
        name: "ClaimsAreTheProcess",
        killer: "crashes::DST-1::processes_that_compete_share_the_events",
        says: "each by one process",
        defect: || Box::<ClaimsAreTheProcess>::default(),
        sql: "",
    },
];

/// Acks of workers are Ok at once and written a thousand at a time, which no worker lives to see. Those of
/// the suite itself are not touched: what it learns of the workers must be what fails it.
#[derive(Default)]
struct AcksAreWrittenLater(Mutex<Vec<Lease>>);

/// The consumer that the case has its workers be.
const WORKER: &str = "killed";

#[async_trait]
impl Defect for AcksAreWrittenLater {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        if lease.consumer.as_str() != WORKER {
            return real.backend.ack(lease).await;
        }
        let due = {
            let mut acked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            acked.push(lease.clone());
            if acked.len() < 1_000 {
                return Ok(());
            }
            std::mem::take(&mut *acked)
        };
        real.backend.ack_batch(&due).await.into_iter().collect()
    }
}

/// What is handed out is acked at once: at most once, that is.
struct DeliveredIsDone;

#[async_trait]
impl Defect for DeliveredIsDone {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let leases = real.backend.fetch(stream, group, options).await?;
        for acked in real.backend.ack_batch(&leases).await {
            acked?;
        }
        Ok(leases)
    }
    async fn ack(&self, _: &Real, _: &Lease) -> Result<()> {
        Ok(())
    }
    async fn ack_batch(&self, _: &Real, leases: &[Lease]) -> Vec<Result<()>> {
        leases.iter().map(|_| Ok(())).collect()
    }
}

/// A worker does not live to see its third ack.
#[derive(Default)]
struct AcksEndTheProcess(Mutex<u32>);

#[async_trait]
impl Defect for AcksEndTheProcess {
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        let acks = {
            let mut acks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *acks += 1;
            *acks
        };
        assert!(
            acks < 3 || lease.consumer.as_str() != WORKER,
            "it ends on purpose"
        );
        real.backend.ack(lease).await
    }
}

/// What is wrong is the store.
struct NoDefect;

impl Defect for NoDefect {}

/// The store keeps a claim for a year; only the process that made it knows when it ends.
struct LeasesEndInTheProcess;

#[async_trait]
impl Defect for LeasesEndInTheProcess {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let duration = options.lease_duration.as_duration();
        let year = LeaseDuration::new(Duration::from_secs(365 * 86_400))?;
        let kept = options.clone().with_lease_duration(year);
        let mut leases = real.backend.fetch(stream, group, &kept).await?;
        for lease in &mut leases {
            lease.expires_at = lease.leased_at.saturating_add(duration);
        }
        Ok(leases)
    }
}

/// Each process has a cursor of its own.
#[derive(Default)]
struct ClaimsAreTheProcess(Mutex<u64>);

#[async_trait]
impl Defect for ClaimsAreTheProcess {
    async fn fetch(
        &self,
        real: &Real,
        stream: &StreamName,
        group: &GroupName,
        options: &FetchOptions,
    ) -> Result<Vec<Lease>> {
        let log = real.backend.read(stream, &ReadOptions::new()).await?;
        let now = real.now();
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = log.into_iter().filter(|event| event.sequence.get() > *at);
        let leases: Vec<Lease> = next
            .take(options.limit as usize)
            .map(|event| Lease {
                event,
                group: group.clone(),
                consumer: options.consumer.clone(),
                lease_id: LeaseId::generate(),
                receipt: None,
                attempt: 1,
                leased_at: now,
                expires_at: now.saturating_add(options.lease_duration.as_duration()),
            })
            .collect();
        *at += leases.len() as u64;
        Ok(leases)
    }
    async fn ack(&self, real: &Real, lease: &Lease) -> Result<()> {
        match real.backend.ack(lease).await {
            Err(Error::StaleLease) => Ok(()),
            acked => acked,
        }
    }
}

/// The Postgres backend with a defect in front of every handle.
struct Broken {
    real: Postgres,
    faulty: &'static Faulty,
}

impl Broken {
    fn wrapped(&self, opened: Opened, clock: Arc<dyn Clock>) -> Opened {
        let backend = opened?;
        let real = Real {
            store: Arc::clone(&backend),
            backend,
            clock,
            journal: Arc::default(),
            beside: Arc::default(),
            handle: 0,
            pool: 1,
            late: Arc::default(),
        };
        Ok(Arc::new(Wrapped {
            real,
            defect: (self.faulty.defect)(),
        }))
    }
}

#[async_trait]
impl Harness for Broken {
    fn name(&self) -> &str {
        "broken-postgres"
    }
    fn version(&self) -> &str {
        self.real.version()
    }
    fn clock_control(&self) -> ClockControl {
        self.real.clock_control()
    }
    async fn server(&self) -> Result<Option<Server>, HarnessError> {
        self.real.server().await
    }
    async fn open(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let opened = self.real.open(namespace, Arc::clone(&clock)).await;
        self.real.execute(namespace, self.faulty.sql).await?;
        self.wrapped(opened, clock)
    }
    async fn second_handle(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let opened = self.real.second_handle(namespace, Arc::clone(&clock)).await;
        self.wrapped(opened, clock)
    }
    async fn reopen(&self, namespace: &Namespace, clock: Arc<dyn Clock>) -> Opened {
        let opened = self.real.reopen(namespace, Arc::clone(&clock)).await;
        self.wrapped(opened, clock)
    }
    async fn open_via(
        &self,
        namespace: &Namespace,
        clock: Arc<dyn Clock>,
        address: SocketAddr,
    ) -> Opened {
        self.real.open_via(namespace, clock, address).await
    }
    async fn restart_store(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        self.real.restart_store(namespace).await
    }
    async fn discard(&self, namespace: &Namespace) -> Result<(), HarnessError> {
        self.real.discard(namespace).await
    }
}

fn main() -> ExitCode {
    let postgres = match Postgres::from_env() {
        Ok(postgres) => postgres,
        Err(code) => return code,
    };
    if let Ok(name) = env::var("RHEO_DEFECT") {
        let Some(faulty) = FAULTY.iter().find(|faulty| faulty.name == name) else {
            eprintln!("error: RHEO_DEFECT is {name}, which is no defect of this program");
            return ExitCode::FAILURE;
        };
        return postgres.and_drop_all(|real| rheo_contract::run(Broken { real, faulty }));
    }
    let may_restart = env::var_os("RHEO_POSTGRES_PID_FILE").is_some();
    let trials = FAULTY.iter().map(|faulty| {
        let is_left_out = faulty.killer == RESTARTS && !may_restart;
        Trial::test(faulty.name, || dies(faulty)).with_ignored_flag(is_left_out)
    });
    // One by one: a server that is restarted is gone for the others.
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Runs the case made for a defect, in a process that has it.
fn dies(faulty: &Faulty) -> Result<(), Failed> {
    let folder = env::temp_dir().join(format!("rheo-{}-{}", faulty.name, std::process::id()));
    let ran = Command::new(env::current_exe()?)
        .args(["--exact", faulty.killer])
        .env("RHEO_DEFECT", faulty.name)
        .env("RHEO_CERTIFICATES", &folder)
        .output()?;
    let certificate = Certificate::read(&folder.join("broken-postgres.json"));
    std::fs::remove_dir_all(&folder)?;
    let result = certificate?
        .cases
        .into_iter()
        .find(|case| case.name == faulty.killer)
        .ok_or_else(|| String::from_utf8_lossy(&ran.stderr).into_owned())?;
    let reason = result.reason.unwrap_or_default();
    if result.verdict != Verdict::Fail || !reason.contains(faulty.says) {
        return Err(Failed::from(format!(
            "{}: {:?}, and it should fail and say {:?}:\n{reason}",
            faulty.name, result.verdict, faulty.says
        )));
    }
    Ok(())
}
