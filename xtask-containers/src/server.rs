//! What each server's image needs to be told, and when it is ready.

use std::collections::HashMap;
use std::env;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use testcontainers::bollard::models::PortBinding;
use testcontainers::core::{CmdWaitFor, ExecCommand, IntoContainerPort, WaitFor};
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt};
use tokio::time::timeout;

/// A container that runs.
pub(crate) type Container = ContainerAsync<GenericImage>;

/// From the start of the container to a server that answers.
const START_LIMIT: Duration = Duration::from_secs(90);
/// Ends when the server answers. Over TCP, since a server that only makes the database has none. Once, and
/// no health check, which the engine would go on with through all the tests.
const ANSWERS: &str = "until pg_isready -q -h 127.0.0.1; do sleep 0.1; done";
/// Makes the set, and waits until it has a primary.
const INITIATE: &str = "rs.initiate({_id: 'rheo', members: [{_id: 0, host: '127.0.0.1:27017'}]}); \
                        while (!db.hello().isWritablePrimary) sleep(50)";

/// What to start.
#[derive(Args)]
pub(crate) struct Order {
    /// Which server.
    #[arg(value_enum)]
    server: Server,
    /// Its image, which the engine has, or pulls.
    pub(crate) image: String,
    /// MongoDB as a replica set of one.
    #[arg(long)]
    replica_set: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Server {
    /// PostgreSQL.
    Postgres,
    /// MongoDB.
    Mongo,
}

impl Order {
    pub(crate) fn server(&self) -> &'static str {
        match self.server {
            Server::Postgres => "postgres",
            Server::Mongo => "mongo",
        }
    }

    fn port(&self) -> u16 {
        match self.server {
            Server::Postgres => 5432,
            Server::Mongo => 27017,
        }
    }

    /// The container to start, with this name and this password for the server.
    pub(crate) fn request(&self, name: &str, password: &str) -> ContainerRequest<GenericImage> {
        let (image, tag) = name_and_tag(&self.image);
        let port = self.port();
        let image = GenericImage::new(image, tag).with_exposed_port(port.tcp());
        let request = match self.server {
            Server::Postgres => postgres(image, password),
            Server::Mongo => self.mongo(image),
        };
        let request = request
            .with_container_name(name)
            .with_startup_timeout(START_LIMIT);
        if !is_of_this_machine(env::var("DOCKER_HOST").ok().as_deref()) {
            return request;
        }
        // A server for tests is for this machine alone.
        request.with_host_config_modifier(move |host| {
            let binding = PortBinding {
                host_ip: Some("127.0.0.1".to_owned()),
                host_port: None,
            };
            let bindings = HashMap::from([(format!("{port}/tcp"), Some(vec![binding]))]);
            host.port_bindings = Some(bindings);
            host.publish_all_ports = Some(false);
        })
    }

    fn mongo(&self, image: GenericImage) -> ContainerRequest<GenericImage> {
        let image = image.with_wait_for(WaitFor::message_on_stdout("Waiting for connections"));
        if self.replica_set {
            image.with_cmd(["mongod", "--replSet", "rheo", "--bind_ip_all"])
        } else {
            image.into()
        }
    }

    /// Waits until the server answers, and says where it is.
    pub(crate) async fn url(&self, container: &Container, password: &str) -> Result<String> {
        let host = match container.get_host().await?.to_string() {
            // Published on IPv4 alone, and `localhost` may be another address first.
            host if host == "localhost" => "127.0.0.1".to_owned(),
            host => host,
        };
        let port = container.get_host_port_ipv4(self.port()).await?;
        Ok(match self.server {
            Server::Postgres => {
                run_inside(container, ["sh", "-c", ANSWERS]).await?;
                format!("postgres://rheo:{password}@{host}:{port}/postgres")
            }
            Server::Mongo if self.replica_set => {
                run_inside(container, ["mongosh", "--quiet", "--eval", INITIATE]).await?;
                // The set knows itself by an address inside the container, which nobody else reaches.
                format!("mongodb://{host}:{port}/?directConnection=true")
            }
            Server::Mongo => format!("mongodb://{host}:{port}/"),
        })
    }
}

/// Runs a command in a container to its good end.
async fn run_inside<const N: usize>(container: &Container, command: [&str; N]) -> Result<()> {
    let exec = ExecCommand::new(command).with_cmd_ready_condition(CmdWaitFor::exit_code(0));
    let done = timeout(START_LIMIT, container.exec(exec))
        .await
        .with_context(|| format!("{} is not ready after {START_LIMIT:?}", command[0]))?;
    done.with_context(|| format!("{} in the container failed", command[0]))?;
    Ok(())
}

fn postgres(image: GenericImage, password: &str) -> ContainerRequest<GenericImage> {
    image
        .with_wait_for(WaitFor::message_on_either_std("ready for start up."))
        .with_env_var("POSTGRES_USER", "rheo")
        .with_env_var("POSTGRES_PASSWORD", password)
        .with_env_var("POSTGRES_DB", "postgres")
        .with_env_var("POSTGRES_INITDB_ARGS", "--encoding=UTF8 --no-locale")
        .with_cmd(["postgres", "-c", "fsync=on", "-c", "max_connections=300"])
}

/// Whether the engine's ports are those of this machine, which they are behind a socket of its own.
fn is_of_this_machine(docker_host: Option<&str>) -> bool {
    docker_host.is_none_or(|host| host.starts_with("unix:"))
}

/// The parts of `NAME[:TAG]`; a colon before a slash belongs to a registry's port.
fn name_and_tag(image: &str) -> (&str, &str) {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_of_this_machine, name_and_tag};

    #[test]
    fn an_image_has_a_name_and_a_tag() {
        assert_eq!(name_and_tag("postgres:17.6"), ("postgres", "17.6"));
        assert_eq!(name_and_tag("postgres"), ("postgres", "latest"));
        assert_eq!(name_and_tag("here:5000/a/b"), ("here:5000/a/b", "latest"));
        assert_eq!(name_and_tag("here:5000/a/b:1"), ("here:5000/a/b", "1"));
    }

    #[test]
    fn a_socket_is_of_this_machine() {
        assert!(is_of_this_machine(None));
        assert!(is_of_this_machine(Some("unix:///run/docker.sock")));
        assert!(!is_of_this_machine(Some("tcp://10.0.0.1:2375")));
    }
}
