//! What only this adapter has to show, on the server that `RHEO_POSTGRES_URL` names.

mod bed;
mod cancellation;
mod expiry;
mod interleavings;
mod plans;
mod sessions;
mod workers;
