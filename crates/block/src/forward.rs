//! For a device that stands in front of another one: the methods that are only passed on.

/// Methods of [`BlockDevice`](crate::BlockDevice) that a wrapper passes on to the device in one of its fields.
///
/// ```
/// use flashwise_block::{BlockDevice, BlockError, Request};
///
/// /// Counts requests.
/// struct Counting<D> {
///     drive: D,
///     requests: u64,
/// }
///
/// impl<D: BlockDevice> BlockDevice for Counting<D> {
///     flashwise_block::forward!(drive: info now wait poll outstanding pause counters writable extents);
///
///     fn submit(&mut self, request: Request) -> Result<(), BlockError> {
///         self.requests += 1;
///         self.drive.submit(request)
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($drive:tt: $($method:ident)*) => { $($crate::forward!(@ $drive $method);)* };
    (@ $drive:tt info) => {
        fn info(&self) -> &$crate::DeviceInfo {
            self.$drive.info()
        }
    };
    (@ $drive:tt now) => {
        fn now(&self) -> $crate::Nanos {
            self.$drive.now()
        }
    };
    (@ $drive:tt submit) => {
        fn submit(&mut self, request: $crate::Request) -> Result<(), $crate::BlockError> {
            self.$drive.submit(request)
        }
    };
    (@ $drive:tt wait) => {
        fn wait(&mut self) -> Result<Option<$crate::Completion>, $crate::BlockError> {
            self.$drive.wait()
        }
    };
    (@ $drive:tt poll) => {
        fn poll(&mut self) -> Result<Option<$crate::Completion>, $crate::BlockError> {
            self.$drive.poll()
        }
    };
    (@ $drive:tt wait_until) => {
        fn wait_until(
            &mut self,
            deadline: $crate::Nanos,
        ) -> Result<Option<$crate::Completion>, $crate::BlockError> {
            self.$drive.wait_until(deadline)
        }
    };
    (@ $drive:tt outstanding) => {
        fn outstanding(&self) -> usize {
            self.$drive.outstanding()
        }
    };
    (@ $drive:tt pause) => {
        fn pause(&mut self, duration: $crate::Nanos) -> Result<(), $crate::BlockError> {
            self.$drive.pause(duration)
        }
    };
    (@ $drive:tt counters) => {
        fn counters(&self) -> $crate::DeviceCounters {
            self.$drive.counters()
        }
    };
    (@ $drive:tt writable) => {
        fn writable(&self) -> $crate::ByteSize {
            self.$drive.writable()
        }
    };
    (@ $drive:tt extents) => {
        fn extents(&self) -> Result<$crate::ExtentMap, $crate::PlacementUnknown> {
            self.$drive.extents()
        }
    };
}
