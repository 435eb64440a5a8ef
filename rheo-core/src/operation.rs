//! The names of the operations, for errors, histories and scripted faults.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! operations {
    ($($variant:ident => $name:literal, $writes:literal;)+) => {
        /// An operation of [`Backend`](crate::Backend).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "each names the method of Backend that documents it")]
        pub enum Operation { $($variant,)+ }

        impl Operation {
            /// Every operation, in the order of the trait.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The method's name.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Whether the operation changes the store; only then may it be `Ambiguous` (ERR-3).
            pub fn writes(self) -> bool {
                match self { $(Self::$variant => $writes,)+ }
            }
        }
    };
}

operations! {
    Close => "close", false;
    EnsureIndexes => "ensure_indexes", true;
    Ping => "ping", false;
    CreateStream => "create_stream", true;
    CreateGroup => "create_group", true;
    Append => "append", true;
    AppendBatch => "append_batch", true;
    Read => "read", false;
    Query => "query", false;
    Fetch => "fetch", true;
    Renew => "renew", true;
    Ack => "ack", true;
    Retry => "retry", true;
    Reject => "reject", true;
    RenewBatch => "renew_batch", true;
    AckBatch => "ack_batch", true;
    RetryBatch => "retry_batch", true;
    RejectBatch => "reject_batch", true;
    Replay => "replay", true;
    ResetGroup => "reset_group", true;
    Lag => "lag", false;
    ListStreams => "list_streams", false;
    ListGroups => "list_groups", false;
    DeadLetters => "dead_letters", false;
    GroupInfo => "group_info", false;
    WaitForWork => "wait_for_work", false;
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
