//! Facts, one hash per topic.

use super::RedisStore;
use crate::facts::FactStore;
use crate::store::StoreFuture;
use bytes::Bytes;

fn key(topic: &str) -> String {
    format!("tg:1:{{facts:{topic}}}")
}

impl FactStore for RedisStore {
    fn publish(&self, topic: String, name: String, fact: Bytes) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let key = key(&topic);
            let mut set = redis::cmd("HSET");
            set.arg(&key).arg(&name).arg(&fact[..]);
            let mut expire = redis::cmd("PEXPIRE");
            expire.arg(&key).arg(self.ttl());
            let all = async {
                self.send::<u64>(&key, &set).await?;
                self.send::<u64>(&key, &expire).await?;
                Ok(())
            };
            self.within(self.timeout, all).await
        })
    }

    fn published(&self, topic: String) -> StoreFuture<'_, Vec<(String, Bytes)>> {
        Box::pin(async move {
            let key = key(&topic);
            let mut command = redis::cmd("HGETALL");
            command.arg(&key);
            let facts: Vec<(String, Vec<u8>)> = self.within(self.timeout, self.send(&key, &command)).await?;
            Ok(facts.into_iter().map(|(name, fact)| (name, fact.into())).collect())
        })
    }

    fn forget(&self, topic: String) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let key = key(&topic);
            let mut command = redis::cmd("DEL");
            command.arg(&key);
            self.within(self.timeout, self.send::<u64>(&key, &command)).await.map(drop)
        })
    }
}
