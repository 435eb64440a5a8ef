//! Killing the server that tests run on, where whoever started it starts it again.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::process::Command;

/// How long a server may take until it runs again.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Kills (SIGKILL) the process whose id is in a file, and waits until `serves` says that its successor
/// serves.
///
/// # Errors
///
/// When there is nothing to kill, or when nothing serves within 30 s.
pub async fn kill_and_wait<F: Future<Output = bool>>(
    pid_file: &Path,
    serves: impl Fn() -> F,
) -> io::Result<()> {
    let killed = std::fs::read_to_string(pid_file)?;
    let status = Command::new("kill").args(["-9", &killed]).status().await?;
    if !status.success() {
        return Err(io::Error::other(format!("kill -9 {killed}: {status}")));
    }
    let begun = Instant::now();
    while std::fs::read_to_string(pid_file)? == killed || !serves().await {
        if begun.elapsed() > PATIENCE {
            let why =
                format!("the server does not serve again, {PATIENCE:?} after kill -9 {killed}");
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
