use std::time::Duration;

use tenure::{Coordinator, ErrorKind};

use super::{BucketOf, Cloud};

impl<C: Cloud> BucketOf<C> {
    /// A lease goes from holder to holder by release and by crash, with growing tokens.
    pub(crate) async fn hands_a_lease_over(&self) {
        let ttl = Duration::from_secs(2);
        let request =
            |coordinator: &Coordinator| coordinator.lease("job").unwrap().without_witness().ttl(ttl);
        let first = Coordinator::connect(self.store()).await.unwrap();
        let second = Coordinator::connect(self.store()).await.unwrap();
        let lease = request(&first).acquire().await.unwrap();
        let held = request(&second).wait(Duration::ZERO).acquire().await.unwrap_err();
        assert_eq!(held.kind(), ErrorKind::Held);
        let token = lease.token();
        lease.release().await.unwrap();

        // Neither renewed nor released: as good as dead.
        let dead = request(&second).manual().acquire().await.unwrap();
        assert!(dead.token() > token);
        let next = request(&first).wait(Duration::from_secs(60)).acquire().await.unwrap();
        assert!(next.token() > dead.token());
        assert!(dead.check().is_err(), "it knows");
        let micros = next.token().get();
        assert!(micros > 1_577_836_800_000_000, "tokens begin at the store's time: {micros}");
        next.release().await.unwrap();
    }
}
