//! The crate `redis`, unmodified.

use redis::{Commands, pipe};

use crate::client::Server;

#[test]
fn the_crate_redis_works_unmodified() -> redis::RedisResult<()> {
    let server = Server::start();
    for protocol in ["resp2", "resp3"] {
        let url = format!("redis://{}/?protocol={protocol}", server.address());
        let mut client = redis::Client::open(url)?.get_connection()?;
        let _: () = client.set("name", "ann")?;
        assert_eq!(client.get::<_, String>("name")?, "ann");
        let (count, list): (i64, Vec<String>) = pipe()
            .atomic()
            .incr("count", 5)
            .del("list")
            .ignore()
            .rpush("list", &["a", "b"])
            .ignore()
            .lrange("list", 0, -1)
            .query(&mut client)?;
        assert!(count % 5 == 0 && list == ["a", "b"]);
        let _: () = client.zadd("scores", "ann", 1.5)?;
        let scores: Vec<(String, f64)> = client.zrange_withscores("scores", 0, -1)?;
        assert_eq!(scores, [("ann".to_owned(), 1.5)]);
        let sum: i64 = redis::transaction(&mut client, &["count"], |client, pipe| {
            let count: i64 = client.get("count")?;
            let sum: Option<(i64,)> =
                pipe.set("sum", count + 1).ignore().get("sum").query(client)?;
            Ok(sum.map(|it| it.0))
        })?;
        assert_eq!(sum, count + 1);
    }
    Ok(())
}
