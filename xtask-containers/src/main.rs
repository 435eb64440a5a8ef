//! Holds a server in a container for as long as standard input stays open.
//!
//! `cargo xtask` starts this program and keeps the other end of its standard input, so the container
//! goes when that process ends, however it ends. A program of its own, so that nobody builds
//! testcontainers who starts no container. Its standard output is one line of JSON: `url` and the
//! `container`'s name, or `error`.

mod server;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::json;
use testcontainers::bollard::Docker;
use testcontainers::bollard::query_parameters::RemoveContainerOptionsBuilder;
use testcontainers::core::client::docker_client_instance;
use testcontainers::runners::AsyncRunner;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uuid::Uuid;

use server::Order;

/// Hold a server in a container until standard input ends.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    order: Order,
}

#[tokio::main]
async fn main() -> ExitCode {
    match hold(&Arguments::parse().order).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{}", json!({"error": format!("{error:#}")}));
            ExitCode::FAILURE
        }
    }
}

async fn hold(order: &Order) -> Result<()> {
    let mut told_to_end = told_to_end()?;
    let engine = docker_client_instance().await.context("no Docker engine")?;
    // The name is known before there is a container, so it can be removed whatever the start is at.
    let name = format!("rheo-{}-{}", order.server(), Uuid::new_v4().simple());
    let password = Uuid::new_v4().simple().to_string();
    let request = order.request(&name, &password);
    let mut start = tokio::spawn(async move { request.start().await });
    let started = tokio::select! {
        started = &mut start => started?,
        _ = &mut told_to_end => return remove_while_starting(&engine, &name, start).await,
    };
    let held = async {
        let container = started.with_context(|| format!("{} did not start", order.image))?;
        let url = tokio::select! {
            url = order.url(&container, &password) => url?,
            _ = &mut told_to_end => return Ok(()),
        };
        println!("{}", json!({"url": url, "container": name}));
        // An error says that nobody is left to tell, which is as good.
        let _ = told_to_end.await;
        Ok(())
    };
    let held = held.await;
    held.and(remove(&engine, &name).await)
}

/// Becomes ready when standard input ends or a signal says so.
fn told_to_end() -> Result<oneshot::Receiver<()>> {
    let (say, told) = oneshot::channel();
    let (closed, input_ended) = oneshot::channel();
    // A thread and no task: a read of standard input cannot be cancelled, and would hold up the end.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = closed.send(());
    });
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        tokio::select! {
            _ = input_ended => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
        let _ = say.send(());
    });
    Ok(told)
}

/// Removes the container of a start that is under way, as often as it takes for the start to give up.
async fn remove_while_starting<T>(
    engine: &Docker,
    name: &str,
    mut start: JoinHandle<T>,
) -> Result<()> {
    loop {
        remove(engine, name).await?;
        if timeout(Duration::from_millis(100), &mut start)
            .await
            .is_ok()
        {
            return remove(engine, name).await;
        }
    }
}

/// Removes the container with its data, if it is there.
async fn remove(engine: &Docker, name: &str) -> Result<()> {
    use testcontainers::bollard::errors::Error::DockerResponseServerError as Refused;
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true);
    match engine.remove_container(name, Some(options.build())).await {
        // 404: there is none; 409: another removal is under way.
        Ok(())
        | Err(Refused {
            status_code: 404 | 409,
            ..
        }) => Ok(()),
        Err(error) => bail!("the container {name} cannot be removed: {error}"),
    }
}
