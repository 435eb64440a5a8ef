//! Reads of another range, or of nothing.

use rheo_core::{Error, Event, Partition, ReadOptions, Result, Sequence, StreamName, async_trait};

use crate::defect::{Defect, Real};

macro_rules! reads {
    ($type:ident, |$real:ident, $stream:ident, $options:ident| $read:block) => {
        #[derive(Default)]
        pub(super) struct $type;

        #[async_trait]
        impl Defect for $type {
            async fn read(
                &self,
                $real: &Real,
                $stream: &StreamName,
                $options: &ReadOptions,
            ) -> Result<Vec<Event>> {
                $read
            }
        }
    };
}

// At the end it stops all the same, or reading on would never end.
reads!(ReadIncludesAfter, |real, stream, options| {
    let events = real.backend.read(stream, options).await?;
    if events.is_empty() {
        return Ok(events);
    }
    let after = options.after.previous();
    real.backend
        .read(stream, &options.clone().with_after(after))
        .await
});

reads!(ReadLimitOf0MeansAll, |real, stream, options| {
    let limit = if options.limit == 0 {
        u32::MAX
    } else {
        options.limit
    };
    real.backend
        .read(stream, &options.clone().with_limit(limit))
        .await
});

reads!(ReadGives50ByDefault, |real, stream, options| {
    let limit = if options.limit == 100 {
        50
    } else {
        options.limit
    };
    real.backend
        .read(stream, &options.clone().with_limit(limit))
        .await
});

reads!(ReadIsAlwaysOfPartition0, |real, stream, options| {
    real.backend
        .read(stream, &options.clone().with_partition(Partition::ZERO))
        .await
});

reads!(ReadIsOfAllPartitions, |real, stream, options| {
    let mut events = real.backend.read(stream, options).await?;
    for number in (0..8).filter(|number| *number != options.partition.number()) {
        let other = options.clone().with_partition(Partition::new(number));
        events.extend(real.backend.read(stream, &other).await.unwrap_or_default());
    }
    events.sort_by_key(|event| (event.sequence, event.partition));
    events.truncate(options.limit as usize);
    Ok(events)
});

reads!(MissingStreamReadsAsEmpty, |real, stream, options| {
    match real.backend.read(stream, options).await {
        Err(Error::StreamNotFound { .. }) => Ok(vec![]),
        read => read,
    }
});

reads!(ReadOf0AsksForNoStream, |real, stream, options| {
    if options.limit == 0 {
        return Ok(vec![]);
    }
    real.backend.read(stream, options).await
});

reads!(ReadsAreCutAt1000, |real, stream, options| {
    let limit = options.limit.min(1_000);
    real.backend
        .read(stream, &options.clone().with_limit(limit))
        .await
});

reads!(ReadsAreCutAtAMegabyte, |real, stream, options| {
    let mut events = real.backend.read(stream, options).await?;
    let mut bytes = 0;
    let fits = events.iter().take_while(|event| {
        let text = event.payload.get("text").and_then(|text| text.as_str());
        bytes += text.map_or(0, str::len);
        bytes <= 1 << 20
    });
    let fits = fits.count().max(1);
    events.truncate(fits);
    Ok(events)
});

reads!(AfterIsReadIn32Bits, |real, stream, options| {
    let low = options.after.get() & u64::from(u32::MAX);
    let after = Sequence::new(low)?;
    real.backend
        .read(stream, &options.clone().with_after(after))
        .await
});
