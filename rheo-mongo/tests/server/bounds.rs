//! As much as the bound allows may be open in a partition, and become something else at once.

use rheo_core::{Backend, Reason};

use crate::scene::{P1, Scene, event, fetch, group, stream};

const BATCHES: u64 = 3;
const IN_A_BATCH: u64 = 3_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_group_gets_over_any_number_of_dead_letters() {
    let scene = Scene::new(1).await;
    let backend = scene.bed.backend().await;
    for _ in 0..BATCHES {
        let batch = (0..IN_A_BATCH).map(|number| event(P1, number)).collect();
        let appended = backend.append_batch(&stream(), batch).await;
        appended.expect("appended");
    }
    let mut leases = Vec::new();
    loop {
        let more = fetch(&backend, P1, u32::MAX).await;
        if more.is_empty() {
            break;
        }
        leases.extend(more);
    }
    let reason = Reason::new("x".repeat(1_024));
    for rejected in backend.reject_batch(&leases, &reason).await {
        rejected.expect("rejected");
    }

    // They are written down by and by, by whoever comes.
    for lease in &scene.leases[2..] {
        backend.ack(lease).await.expect("acked");
    }
    let info = backend.group_info(&stream(), &group()).await;
    let dead = 1 + leases.len() as u64;
    assert_eq!(info.expect("there").dead_letters, dead);
    scene.bed.drop().await;
}
