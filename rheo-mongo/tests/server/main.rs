//! What only this adapter has to show, on the server that `RHEO_MONGO_URL` names.

mod again;
mod bed;
mod bounds;
mod crash;
mod differences;
mod dropped;
mod late;
mod operations;
mod proxy;
mod scene;
mod silent;
mod wakeup;
mod workers;
