//! Text that is taken for a command.

use rheo_core::{
    Cause, Error, Event, JsonObject, NewEvent, Result, StreamName, StreamOptions, async_trait,
};
use serde_json::Value;

use crate::defect::{Defect, Real};

#[derive(Default)]
pub(super) struct CommandsAreRefused;

#[async_trait]
impl Defect for CommandsAreRefused {
    async fn create_stream(
        &self,
        real: &Real,
        stream: &StreamName,
        options: &StreamOptions,
    ) -> Result<()> {
        real.backend.ping().await?;
        if stream.as_str().contains("DROP TABLE") {
            return Err(Error::Failed(Cause::new("refused by the firewall")));
        }
        real.backend.create_stream(stream, options).await
    }
}

#[derive(Default)]
pub(super) struct DollarFieldsComeBackEscaped;

#[async_trait]
impl Defect for DollarFieldsComeBackEscaped {
    async fn append_batch(
        &self,
        real: &Real,
        stream: &StreamName,
        mut events: Vec<NewEvent>,
    ) -> Result<Vec<Event>> {
        for event in &mut events {
            let Ok(Value::Object(fields)) = serde_json::to_value(&event.payload) else {
                continue;
            };
            let fields = fields.into_iter().map(|(name, value)| {
                let name = match name.strip_prefix("${") {
                    Some(rest) => format!("\u{ff04}{{{rest}"),
                    None => name,
                };
                (name, value)
            });
            event.payload = JsonObject::payload(Value::Object(fields.collect()))?;
        }
        real.backend.append_batch(stream, events).await
    }
}
