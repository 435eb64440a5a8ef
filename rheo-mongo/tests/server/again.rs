//! What comes again is read together, however many batches it is in, and before it is claimed.

use std::time::Duration;

use rheo_core::Backend;

use crate::proxy::{Afterwards, Proxy};
use crate::scene::{P1, Scene, event, fetch, stream};

const EVENTS: u32 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn many_expired_leases_take_few_commands() {
    let scene = Scene::new(1).await;
    let direct = scene.bed.backend().await;
    for number in 0..u64::from(EVENTS) {
        let appended = direct.append(&stream(), event(P1, number)).await;
        appended.expect("appended");
    }
    let first = fetch(&direct, P1, EVENTS).await;
    scene.let_expire();

    let proxy = Proxy::start(scene.bed.server().await, usize::MAX, Afterwards::Goes).await;
    let patience = Duration::from_secs(15);
    let backend = scene.bed.via(proxy.address, patience).await;
    let again = fetch(&backend, P1, EVENTS).await;
    assert_eq!(again.len(), EVENTS as usize);
    assert!(first.iter().all(|lease| lease.attempt == 1));
    assert!(proxy.commands() < 20, "{} commands", proxy.commands());
    scene.bed.drop().await;
}
