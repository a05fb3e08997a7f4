-- Views of the cluster's metadata over time, from the histories. The comment above each view is the question that it
-- answers. dashboards/history_views.py defines the views *_now and *_committed and the functions *_as_of and *_at.
--
-- Spark runs these views; for the report, and where their tables are small, DataFusion does: dashboards/embedded_sql.py.
-- They keep to what both engines read: CASE, not IF; cardinality, not size; || for text.

-- How did each partition change? Each version with the previous one. Truncated changes are omitted.
CREATE OR REPLACE VIEW partition_changes AS
SELECT *,
       LAG(named_struct('leader', leader, 'isr', isr, 'replicas', replicas, 'adding_replicas', adding_replicas,
                        'removing_replicas', removing_replicas,
                        'eligible_leader_replicas', eligible_leader_replicas))
         OVER (PARTITION BY cluster_id, topic_id, partition_id ORDER BY valid_from_offset) AS `before`
FROM partitions;

-- When did leadership move, from which broker to which, and did the former leader cause it (fenced, in controlled
-- shutdown, unregistered)? What the batch of the change did to that broker counts, wherever in it, and nothing later: a
-- batch is appended at once, with one time of its leader. reassignment: the record changes the replicas, too.
-- caused_by_broker is null if no broker left. Unclean: Kafka recorded RECOVERING, or (before release 3.2) the leader was
-- neither in the ISR nor in the ELR nor an adding replica. Not exact: only a snapshot over a gap shows it; it happened
-- at or before, and what caused it is not known. Nor is it where no registration of the former leader is known.
-- An unregistration has no time of its own here: where the clock went back below that of the change, later ones share
-- its effective time. It did not cause what left the broker in the ISR, fenced it or changed its registration in the
-- same batch, or moved the lead by its controlled shutdown: Kafka removes it from every ISR, and a fenced broker leads
-- nothing.
CREATE OR REPLACE VIEW leader_changes AS
WITH broker_states AS (
  -- batch_at: the leader's own time of the record, unless an end of transaction made it visible; ended_batch_at: of the
  -- record that ended the state, but of an unregistration, which leaves no row.
  SELECT v.cluster_id, v.broker_id, v.fenced, v.in_controlled_shutdown, v.valid_from_offset, v.record_leader_epoch,
         CASE WHEN v.record_offset = v.valid_from_offset THEN v.appended_at END AS batch_at,
         v.valid_to_offset, v.valid_to_at, n.record_leader_epoch AS ended_leader_epoch,
         CASE WHEN n.record_offset = n.valid_from_offset THEN n.appended_at END AS ended_batch_at
  FROM brokers v
  LEFT JOIN brokers n
    ON n.cluster_id = v.cluster_id AND n.broker_id = v.broker_id AND n.valid_from_offset = v.valid_to_offset
), known_brokers AS (
  SELECT cluster_id, broker_id, MIN(valid_from_offset) AS first_offset FROM brokers GROUP BY cluster_id, broker_id
)
SELECT c.cluster_id, c.topic_id, c.topic_name, c.partition_id, c.valid_from_offset AS `offset`,
       c.valid_from_at AS changed_at, former.leader AS leader_before, c.leader, c.leader_epoch,
       CASE WHEN NOT c.valid_from_exact THEN NULL
            WHEN former.leader = -1 THEN 'leader found'
            WHEN NOT array_contains(c.replicas, former.leader) THEN 'reassignment'
            WHEN k.broker_id IS NULL THEN NULL
            WHEN b.broker_id IS NULL THEN 'unregistered'
            WHEN b.fenced THEN 'fenced'
            WHEN b.in_controlled_shutdown THEN 'controlled shutdown'
            WHEN former.replicas <> c.replicas THEN 'reassignment'
            WHEN array_position(c.replicas, c.leader) = 1 THEN 'preferred leader'
            ELSE 'elected' END AS cause,
       CASE WHEN c.valid_from_exact AND k.broker_id IS NOT NULL
             AND (b.broker_id IS NULL OR b.fenced OR b.in_controlled_shutdown)
            THEN former.leader END AS caused_by_broker,
       CASE WHEN c.valid_from_exact AND former.leader <> -1 AND (b.fenced OR b.in_controlled_shutdown)
            THEN b.valid_from_offset END AS caused_by_offset,
       c.leader <> -1 AND (c.leader_recovery_state = 'RECOVERING'
         OR CASE WHEN c.valid_from_exact
                 THEN NOT array_contains(array_union(former.isr, former.eligible_leader_replicas), c.leader)
                      AND NOT array_contains(former.adding_replicas, c.leader) END) AS is_unclean,
       c.commit_status, c.valid_from_exact AS is_exact, c.earliest_from_offset AS earliest_offset,
       c.earliest_from_at AS earliest_at
FROM partitions former
JOIN partitions c
  ON former.cluster_id = c.cluster_id AND former.topic_id = c.topic_id AND former.partition_id = c.partition_id
 AND former.valid_to_offset = c.valid_from_offset AND former.leader <> c.leader
LEFT JOIN known_brokers k
  ON k.cluster_id = c.cluster_id AND k.broker_id = former.leader AND k.first_offset <= c.valid_from_offset
LEFT JOIN broker_states b
  ON b.cluster_id = c.cluster_id AND b.broker_id = former.leader
 AND (b.valid_from_offset <= c.valid_from_offset
      OR b.record_leader_epoch = c.record_leader_epoch AND b.batch_at = c.appended_at
         AND c.record_offset = c.valid_from_offset)
 AND (b.valid_to_offset IS NULL
      OR b.valid_to_offset > c.valid_from_offset
         AND NOT COALESCE(c.record_offset = c.valid_from_offset
                          AND CASE WHEN b.ended_leader_epoch IS NULL
                                   THEN b.valid_to_at = c.valid_from_at AND c.appended_at = c.valid_from_at
                                        AND NOT array_contains(c.isr, former.leader)
                                        AND NOT COALESCE(b.fenced, FALSE)
                                        AND NOT (COALESCE(b.in_controlled_shutdown, FALSE) AND c.leader <> -1)
                                        AND NOT COALESCE(b.record_leader_epoch = c.record_leader_epoch
                                                         AND b.batch_at = c.appended_at, FALSE)
                                   ELSE b.ended_leader_epoch = c.record_leader_epoch
                                        AND b.ended_batch_at = c.appended_at END, FALSE));

-- Which elections may have lost records? Those that elected a leader outside the ISR and the ELR.
CREATE OR REPLACE VIEW unclean_elections AS
SELECT * FROM leader_changes WHERE is_unclean;

-- Which reassignments took place (KIP-455), and how did they end? requested: in progress. immediate: one record, as
-- Kafka writes where the target replicas are in sync already. completed, cancelled: the replicas are those of the target,
-- or those from before. superseded: another request came first. deleted: with the topic. null: ended, unknown how.
-- done_offset null: in progress. Not exact: only a snapshot shows it; it began or ended at or before.
CREATE OR REPLACE VIEW reassignments AS
WITH versions AS (
  SELECT *, array_max(adding_replicas) IS NOT NULL OR array_max(removing_replicas) IS NOT NULL AS is_moving
  FROM partitions
), steps AS (
  -- Those that begin, are part of or end a reassignment, with the one before. By joins: windows over all versions take
  -- both engines several times as long. No RIGHT JOIN: DataFusion may apply conditions on the former to the latter.
  SELECT v.*, TRUE AS goes_on, former.is_moving AS was_moving, former.replicas AS last_replicas,
         former.adding_replicas AS last_adding, former.removing_replicas AS last_removing
  FROM versions former
  JOIN versions v
    ON former.cluster_id = v.cluster_id AND former.topic_id = v.topic_id AND former.partition_id = v.partition_id
   AND former.valid_to_offset = v.valid_from_offset
  WHERE v.is_moving OR former.is_moving OR former.replicas <> v.replicas
  UNION ALL
  SELECT v.*, FALSE, NULL, NULL, NULL, NULL
  FROM versions v
  LEFT ANTI JOIN versions former
    ON former.cluster_id = v.cluster_id AND former.topic_id = v.topic_id AND former.partition_id = v.partition_id
   AND former.valid_to_offset = v.valid_from_offset
  WHERE v.is_moving
), followed AS (
  -- With the next one. Windows over clusters: each of many partitions takes DataFusion long.
  SELECT *, LEAD(topic_id) OVER steps_on = topic_id AND LEAD(partition_id) OVER steps_on = partition_id
              AND LEAD(valid_from_offset) OVER steps_on = valid_to_offset AS is_followed,
         LEAD(is_moving) OVER steps_on AS next_moving, LEAD(replicas) OVER steps_on AS next_replicas
  FROM steps
  WINDOW steps_on AS (PARTITION BY cluster_id ORDER BY topic_id, partition_id, valid_from_offset)
), marked AS (
  SELECT *, CASE WHEN is_followed THEN next_moving END AS then_moving,
         CASE WHEN is_followed THEN next_replicas END AS then_replicas,
         CASE WHEN is_moving THEN NOT goes_on OR NOT was_moving OR last_replicas <> replicas
                                  OR last_adding <> adding_replicas OR last_removing <> removing_replicas
              WHEN last_replicas = replicas THEN FALSE
              WHEN was_moving THEN valid_from_exact
                                   AND array_except(last_replicas, last_removing) <> replicas
                                   AND array_except(last_replicas, last_adding) <> replicas
              ELSE TRUE END AS is_request
  FROM followed
), runs AS (
  -- The first of each partition is a request.
  SELECT *, SUM(CASE WHEN is_request THEN 1 ELSE 0 END)
              OVER (PARTITION BY cluster_id ORDER BY topic_id, partition_id, valid_from_offset) AS run
  FROM marked WHERE is_moving OR is_request
), ended AS (
  -- Of each run the last version, with what is known of its first: by windows, as MIN and MAX of structs take
  -- DataFusion gigabytes.
  SELECT *,
         CASE WHEN NOT is_moving THEN CASE WHEN begun_exact THEN 'immediate' ELSE 'completed' END
              WHEN valid_to_offset IS NULL THEN 'requested'
              WHEN then_replicas IS NULL THEN 'deleted'
              WHEN NOT then_moving AND array_except(replicas, removing_replicas) = then_replicas THEN 'completed'
              WHEN NOT then_moving AND array_except(replicas, adding_replicas) = then_replicas THEN 'cancelled'
              WHEN valid_to_exact THEN 'superseded' END AS state
  FROM (
    SELECT *,
           FIRST_VALUE(valid_from_offset) OVER whole AS begun_offset,
           FIRST_VALUE(valid_from_at) OVER whole AS begun_at,
           FIRST_VALUE(valid_from_exact) OVER whole AS begun_exact,
           FIRST_VALUE(earliest_from_offset) OVER whole AS earliest_begun_offset,
           FIRST_VALUE(earliest_from_at) OVER whole AS earliest_begun_at,
           FIRST_VALUE(CASE WHEN goes_on THEN last_replicas END) OVER whole AS replicas_before,
           MAX(commit_status) OVER whole AS run_status,
           LEAD(run) OVER (PARTITION BY cluster_id ORDER BY run, valid_from_offset) AS next_run
    FROM runs
    WINDOW whole AS (PARTITION BY cluster_id, run ORDER BY valid_from_offset
                     ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
  )
  WHERE next_run IS NULL OR next_run <> run
)
SELECT cluster_id, topic_id, topic_name, partition_id, state, begun_offset, begun_at,
       CASE WHEN is_moving THEN valid_to_offset ELSE begun_offset END AS done_offset,
       CASE WHEN is_moving THEN valid_to_at ELSE begun_at END AS done_at,
       replicas_before,
       CASE WHEN is_moving THEN array_except(replicas, removing_replicas) ELSE replicas END AS target_replicas,
       CASE WHEN is_moving THEN then_replicas ELSE replicas END AS replicas_after,
       array_sort(CASE WHEN is_moving THEN adding_replicas
                       ELSE array_except(replicas, replicas_before) END) AS added_replicas,
       array_sort(CASE WHEN is_moving THEN removing_replicas
                       ELSE array_except(replicas_before, replicas) END) AS removed_replicas,
       CASE WHEN is_moving THEN ended_by ELSE record_type END AS ended_by, run_status AS commit_status,
       begun_exact, earliest_begun_offset, earliest_begun_at,
       CASE WHEN NOT is_moving THEN begun_exact WHEN valid_to_offset IS NOT NULL THEN valid_to_exact END AS done_exact,
       CASE WHEN is_moving THEN end_commit_status ELSE run_status END AS done_commit_status,
       CASE WHEN is_moving THEN earliest_to_offset ELSE earliest_begun_offset END AS earliest_done_offset,
       CASE WHEN is_moving THEN earliest_to_at ELSE earliest_begun_at END AS earliest_done_at
FROM ended;

-- Which min.insync.replicas was in effect for a topic, and when? The topic's own, else the cluster's default in the
-- metadata log, else 1 (a broker's server.properties is not in the log). Not exact: at or before, as a snapshot shows.
CREATE OR REPLACE VIEW min_isr_periods AS
WITH settings AS (
  SELECT cluster_id, resource_type, resource_name, TRY_CAST(value AS INT) AS min_isr,
         valid_from_offset, valid_to_offset, valid_from_at, valid_to_at, valid_from_exact, valid_to_exact
  FROM configs
  WHERE name = 'min.insync.replicas' AND (resource_type = 'TOPIC' OR resource_type = 'BROKER' AND resource_name = '')
), turns AS (
  SELECT cluster_id, resource_name, resource_type, valid_from_offset AS `offset`, valid_from_at AS at,
         valid_from_exact AS is_exact
  FROM settings
  UNION ALL
  SELECT cluster_id, resource_name, resource_type, valid_to_offset, valid_to_at, valid_to_exact FROM settings
  WHERE valid_to_offset IS NOT NULL
), all_points AS (
  SELECT cluster_id, topic_id, topic_name, valid_from_offset AS `offset`, valid_from_at AS at,
         valid_from_exact AS is_exact
  FROM topics
  UNION ALL
  -- Not one join with OR, which would compare every topic with the settings of all others.
  SELECT t.cluster_id, t.topic_id, t.topic_name, s.`offset`, s.at, s.is_exact
  FROM topics t JOIN turns s
    ON s.cluster_id = t.cluster_id AND s.resource_type = 'TOPIC' AND s.resource_name = t.topic_name
   AND s.`offset` > t.valid_from_offset AND (t.valid_to_offset IS NULL OR s.`offset` < t.valid_to_offset)
  UNION ALL
  SELECT t.cluster_id, t.topic_id, t.topic_name, s.`offset`, s.at, s.is_exact
  FROM topics t JOIN turns s
    ON s.cluster_id = t.cluster_id AND s.resource_type = 'BROKER'
   AND s.`offset` > t.valid_from_offset AND (t.valid_to_offset IS NULL OR s.`offset` < t.valid_to_offset)
), points AS (
  SELECT cluster_id, topic_id, topic_name, `offset`, at,
         COUNT(*) = COUNT(CASE WHEN is_exact THEN 1 END) AS is_exact
  FROM all_points
  GROUP BY cluster_id, topic_id, topic_name, `offset`, at
), followed AS (
  SELECT *, LEAD(topic_id) OVER by_topic = topic_id AS is_followed, LEAD(`offset`) OVER by_topic AS next_offset,
         LEAD(at) OVER by_topic AS next_at, LEAD(is_exact) OVER by_topic AS next_exact
  FROM points
  WINDOW by_topic AS (PARTITION BY cluster_id ORDER BY topic_id, `offset`)
)
SELECT p.cluster_id, p.topic_id, p.topic_name, COALESCE(own.min_isr, shared.min_isr, CAST(1 AS INT)) AS min_isr,
       p.`offset` AS from_offset, p.at AS from_at,
       CASE WHEN p.is_followed THEN p.next_offset END AS to_offset, CASE WHEN p.is_followed THEN p.next_at END AS to_at,
       p.is_exact AS from_exact, CASE WHEN p.is_followed THEN p.next_exact END AS to_exact
FROM followed p
LEFT JOIN settings own
  ON own.cluster_id = p.cluster_id AND own.resource_type = 'TOPIC' AND own.resource_name = p.topic_name
 AND own.valid_from_offset <= p.`offset` AND (own.valid_to_offset IS NULL OR own.valid_to_offset > p.`offset`)
LEFT JOIN settings shared
  ON shared.cluster_id = p.cluster_id AND shared.resource_type = 'BROKER'
 AND shared.valid_from_offset <= p.`offset`
 AND (shared.valid_to_offset IS NULL OR shared.valid_to_offset > p.`offset`);

-- Which partitions were under min ISR, when and for how long? to_offset null: they still are. Where from_exact is false
-- a snapshot shows it first: it began at or before, and under_ms is a minimum; likewise to_exact: it ended at or before,
-- and under_ms is a maximum.
CREATE OR REPLACE VIEW under_min_isr AS
WITH pieces AS (
  SELECT p.cluster_id, p.topic_id, p.topic_name, p.partition_id, p.isr, p.commit_status,
         LEAST(m.min_isr, CAST(cardinality(p.replicas) AS INT)) AS min_isr,
         GREATEST(p.valid_from_offset, m.from_offset) AS from_offset, GREATEST(p.valid_from_at, m.from_at) AS from_at,
         LEAST(p.valid_to_offset, m.to_offset) AS to_offset, LEAST(p.valid_to_at, m.to_at) AS to_at,
         CASE WHEN p.valid_from_offset >= m.from_offset THEN p.valid_from_exact ELSE m.from_exact END AS from_exact,
         CASE WHEN m.to_offset IS NULL OR p.valid_to_offset <= m.to_offset THEN p.valid_to_exact
              ELSE m.to_exact END AS to_exact
  FROM partitions p JOIN min_isr_periods m
    ON m.cluster_id = p.cluster_id AND m.topic_id = p.topic_id
   AND m.from_offset < COALESCE(p.valid_to_offset, 9223372036854775807)
   AND p.valid_from_offset < COALESCE(m.to_offset, 9223372036854775807)
  WHERE p.isr <> p.replicas AND cardinality(p.isr) < cardinality(p.replicas)
), below AS (
  -- Windows over clusters: each of many partitions takes DataFusion long. A run is of one partition, and has a number.
  SELECT *, LAG(to_offset) OVER (PARTITION BY cluster_id ORDER BY topic_id, partition_id, from_offset) AS last_to
  FROM pieces WHERE cardinality(isr) < min_isr
), runs AS (
  SELECT *, SUM(CASE WHEN last_to = from_offset AND from_exact THEN 0 ELSE 1 END)
              OVER (PARTITION BY cluster_id ORDER BY topic_id, partition_id, from_offset) AS run
  FROM below
), joined AS (
  SELECT cluster_id, topic_id, MAX(topic_name) AS topic_name, partition_id, MIN(from_offset) AS from_offset,
         CASE WHEN COUNT(*) = COUNT(to_offset) THEN MAX(to_offset) END AS to_offset, MIN(from_at) AS from_at,
         CASE WHEN COUNT(*) = COUNT(to_offset) THEN MAX(to_at) END AS to_at,
         MIN(CAST(cardinality(isr) AS INT)) AS least_isr,
         MAX_BY(isr, from_offset) AS isr, MAX_BY(min_isr, from_offset) AS min_isr,
         MAX(commit_status) AS commit_status,
         COUNT(*) = COUNT(CASE WHEN from_exact THEN 1 END) AS from_exact,
         CASE WHEN COUNT(*) = COUNT(to_offset) THEN COUNT(*) = COUNT(CASE WHEN to_exact THEN 1 END) END AS to_exact
  FROM runs GROUP BY cluster_id, topic_id, partition_id, run
)
SELECT *, UNIX_MILLIS(to_at) - UNIX_MILLIS(from_at) AS under_ms FROM joined;

-- Which brokers were fenced, when and for how long? to_offset null: the broker still is. Not exact: at or before, as in
-- under_min_isr.
CREATE OR REPLACE VIEW fenced_times AS
WITH marked AS (
  SELECT *, LAG(valid_to_offset) OVER (PARTITION BY cluster_id, broker_id ORDER BY valid_from_offset) AS last_to
  FROM brokers WHERE fenced
), runs AS (
  SELECT *, SUM(CASE WHEN last_to = valid_from_offset AND valid_from_exact THEN 0 ELSE 1 END)
              OVER (PARTITION BY cluster_id, broker_id ORDER BY valid_from_offset) AS run
  FROM marked
), joined AS (
  SELECT cluster_id, broker_id, MIN(valid_from_offset) AS from_offset,
         CASE WHEN COUNT(*) = COUNT(valid_to_offset) THEN MAX(valid_to_offset) END AS to_offset,
         MIN(valid_from_at) AS from_at, CASE WHEN COUNT(*) = COUNT(valid_to_offset) THEN MAX(valid_to_at) END AS to_at,
         MIN_BY(record_type, valid_from_offset) AS fenced_by, MAX_BY(ended_by, valid_from_offset) AS ended_by,
         MAX(commit_status) AS commit_status,
         MIN_BY(valid_from_exact, valid_from_offset) AS from_exact,
         MAX_BY(valid_to_exact, valid_from_offset) AS to_exact
  FROM runs GROUP BY cluster_id, broker_id, run
)
SELECT *, UNIX_MILLIS(to_at) - UNIX_MILLIS(from_at) AS fenced_ms FROM joined;

-- Which states did each broker go through (KIP-631), and for how long? fenced, active, controlled shutdown, and
-- unregistered, from its first registration on. began_as: registered, registered again (by another process, if
-- incarnation_before differs), unfenced, fenced, controlled shutdown, unregistered; null if only a snapshot shows it.
CREATE OR REPLACE VIEW broker_lifecycles AS
WITH versions AS (
  SELECT *, CASE WHEN fenced THEN 'fenced' WHEN in_controlled_shutdown THEN 'controlled shutdown'
                 ELSE 'active' END AS state,
         LAG(valid_to_offset) OVER same <=> valid_from_offset AS goes_on, LAG(broker_epoch) OVER same AS last_epoch,
         LAG(incarnation_id) OVER same AS last_incarnation, LAG(fenced) OVER same AS was_fenced,
         LAG(in_controlled_shutdown) OVER same AS was_shutting_down
  FROM brokers
  WINDOW same AS (PARTITION BY cluster_id, broker_id ORDER BY valid_from_offset)
), events AS (
  SELECT *, CASE WHEN NOT goes_on THEN 'registered'
                 WHEN broker_epoch <> last_epoch THEN 'registered again'
                 WHEN fenced AND NOT was_fenced THEN 'fenced'
                 WHEN was_fenced AND NOT fenced THEN 'unfenced'
                 WHEN in_controlled_shutdown AND NOT was_shutting_down THEN 'controlled shutdown' END AS event
  FROM versions
), runs AS (
  SELECT *, CASE WHEN event IN ('registered', 'registered again') THEN last_incarnation END AS incarnation_before,
         CASE WHEN valid_from_exact THEN event END AS exact_event,
         SUM(CASE WHEN event IS NULL AND valid_from_exact THEN 0 ELSE 1 END)
              OVER (PARTITION BY cluster_id, broker_id ORDER BY valid_from_offset) AS run
  FROM events
), joined AS (
  SELECT cluster_id, broker_id, MIN(broker_epoch) AS broker_epoch, MIN(incarnation_id) AS incarnation_id,
         MIN_BY(incarnation_before, valid_from_offset) AS incarnation_before, MIN(state) AS state,
         MIN_BY(exact_event, valid_from_offset) AS began_as,
         MIN(valid_from_offset) AS from_offset,
         CASE WHEN COUNT(*) = COUNT(valid_to_offset) THEN MAX(valid_to_offset) END AS to_offset,
         MIN(valid_from_at) AS from_at, CASE WHEN COUNT(*) = COUNT(valid_to_offset) THEN MAX(valid_to_at) END AS to_at,
         MIN_BY(valid_from_exact, valid_from_offset) AS from_exact,
         MAX_BY(valid_to_exact, valid_from_offset) AS to_exact,
         MAX(commit_status) AS commit_status, MAX_BY(end_commit_status, valid_from_offset) AS end_commit_status
  FROM runs GROUP BY cluster_id, broker_id, run
), followed AS (
  SELECT *, LEAD(from_offset) OVER same AS next_offset, LEAD(from_at) OVER same AS next_at,
         LEAD(from_exact) OVER same AS next_exact, LEAD(began_as) OVER same AS next_as
  FROM joined
  WINDOW same AS (PARTITION BY cluster_id, broker_id ORDER BY from_offset)
), periods AS (
  SELECT cluster_id, broker_id, broker_epoch, incarnation_id, incarnation_before, state, began_as,
         CASE WHEN NOT to_exact THEN NULL WHEN to_offset <=> next_offset THEN next_as
              WHEN to_offset IS NOT NULL THEN 'unregistered' END AS ended_as,
         from_offset, to_offset, from_at, to_at, from_exact, to_exact, commit_status
  FROM followed
  UNION ALL
  SELECT cluster_id, broker_id, NULL AS broker_epoch, NULL AS incarnation_id, incarnation_id AS incarnation_before,
         'unregistered', CASE WHEN to_exact THEN 'unregistered' END, next_as, to_offset, next_offset, to_at, next_at,
         to_exact, next_exact, end_commit_status
  FROM followed WHERE to_offset IS NOT NULL AND NOT to_offset <=> next_offset
)
SELECT *, UNIX_MILLIS(to_at) - UNIX_MILLIS(from_at) AS state_ms FROM periods;

-- Why was each broker fenced, as far as the log proves it, and what did it cost? new process: Kafka fences a broker
-- that registers until it has caught up. controlled shutdown: it shut down. no heartbeat: none arrived within
-- broker.session.timeout.ms, or the broker asked for it (WantFence); the log does not distinguish these. null: only a
-- snapshot shows it. leaders_moved, left_leaderless: partitions that it led, from its controlled shutdown on.
CREATE OR REPLACE VIEW why_fenced AS
WITH periods AS (
  SELECT *, LAG(state) OVER same AS state_before, LAG(from_offset) OVER same AS before_offset
  FROM broker_lifecycles
  WINDOW same AS (PARTITION BY cluster_id, broker_id ORDER BY from_offset)
), fencings AS (
  SELECT *, CASE WHEN state_before = 'controlled shutdown' THEN before_offset ELSE from_offset END AS leaving_offset
  FROM periods
  WHERE state = 'fenced' AND (began_as IS NULL OR began_as IN ('registered', 'registered again', 'fenced'))
), moves AS (
  SELECT f.cluster_id, f.broker_id, f.from_offset, COUNT(*) AS leaders_moved,
         COUNT(CASE WHEN c.leader = -1 THEN 1 END) AS left_leaderless
  FROM fencings f JOIN leader_changes c
    ON c.cluster_id = f.cluster_id AND c.caused_by_broker = f.broker_id
   AND c.caused_by_offset >= f.leaving_offset AND c.caused_by_offset <= f.from_offset AND c.changed_at <= f.from_at
  GROUP BY f.cluster_id, f.broker_id, f.from_offset
)
SELECT f.cluster_id, f.broker_id, f.broker_epoch, f.incarnation_id,
       CASE WHEN f.began_as IN ('registered', 'registered again') THEN 'new process'
            WHEN f.began_as IS NULL THEN NULL
            WHEN f.state_before = 'controlled shutdown' THEN 'controlled shutdown'
            ELSE 'no heartbeat' END AS cause,
       f.state_before, f.from_offset, f.to_offset, f.from_at, f.to_at, f.from_exact, f.to_exact,
       COALESCE(m.leaders_moved, 0) AS leaders_moved, COALESCE(m.left_leaderless, 0) AS left_leaderless,
       f.commit_status, f.state_ms AS fenced_ms
FROM fencings f
LEFT JOIN moves m
  ON m.cluster_id = f.cluster_id AND m.broker_id = f.broker_id AND m.from_offset = f.from_offset;

-- Which replicas are in places that no broker serves now? offline: their broker registered that log directory earlier,
-- but not now. unknown: it never did. lost: it reported only that the directory is offline. unregistered: the
-- broker itself is gone. From metadata.version 3.7-IV2 on; before, the log names no directories.
CREATE OR REPLACE VIEW stranded_replicas AS
WITH numbered AS (
  SELECT *, EXPLODE(sequence(1, CAST(cardinality(replicas) AS INT))) AS place
  FROM partitions WHERE valid_to_offset IS NULL AND cardinality(replicas) > 0
), placed AS (
  SELECT *, try_element_at(replicas, place) AS broker_id, try_element_at(directories, place) AS directory_id
  FROM numbered
), registered AS (
  SELECT cluster_id, broker_id, directory_id, MAX(valid_to_at) AS registered_until
  FROM (SELECT cluster_id, broker_id, valid_to_at, EXPLODE(log_dirs) AS directory_id FROM brokers)
  GROUP BY cluster_id, broker_id, directory_id
), judged AS (
  SELECT p.*, b.broker_id IS NOT NULL AS is_registered, b.log_dirs
  FROM placed p LEFT JOIN brokers b
    ON b.cluster_id = p.cluster_id AND b.broker_id = p.broker_id AND b.valid_to_offset IS NULL
)
SELECT j.cluster_id, j.broker_id, j.directory_id,
       CASE WHEN NOT j.is_registered THEN 'unregistered'
            WHEN j.directory_id = 'AAAAAAAAAAAAAAAAAAAAAg' THEN 'lost'
            WHEN r.directory_id IS NULL THEN 'unknown' ELSE 'offline' END AS directory_state,
       r.registered_until, j.topic_id, j.topic_name, j.partition_id, j.leader,
       array_contains(j.isr, j.broker_id) AS is_in_isr,
       array_union(j.isr, j.eligible_leader_replicas) = ARRAY(j.broker_id) AS is_only_copy, j.commit_status
FROM judged j
LEFT JOIN registered r
  ON r.cluster_id = j.cluster_id AND r.broker_id = j.broker_id AND r.directory_id = j.directory_id
WHERE NOT j.is_registered
   OR j.directory_id NOT IN ('AAAAAAAAAAAAAAAAAAAAAA', 'AAAAAAAAAAAAAAAAAAAAAQ')
      AND cardinality(j.log_dirs) > 0 AND NOT array_contains(j.log_dirs, j.directory_id);

-- Which log directories are offline, unknown or gone, and how many partitions does each strand?
CREATE OR REPLACE VIEW offline_directories AS
SELECT cluster_id, broker_id, directory_id, directory_state, MAX(registered_until) AS registered_until,
       COUNT(*) AS partitions, COUNT(CASE WHEN leader = -1 THEN 1 END) AS leaderless,
       COUNT(CASE WHEN is_only_copy THEN 1 END) AS only_copies
FROM stranded_replicas
GROUP BY cluster_id, broker_id, directory_id, directory_state;

-- What do the copies of brokers' log directories hold, and does the metadata of that time place it there? Of each
-- directory, the newest copy whose time the captured metadata covers. One row per directory, state and reason.
CREATE OR REPLACE VIEW broker_directory_states AS
SELECT cluster_id, broker_id, directory_id, captured_at, state, reason, COUNT(*) AS partitions,
       slice(array_sort(collect_set(concat(topic_name, '-', partition_id))), 1, 10) AS first_partitions
FROM broker_partitions
GROUP BY cluster_id, broker_id, directory_id, captured_at, state, reason;

-- Which partitions do brokers hold that the metadata did not place there? assigned_topic_id: the id that their topic
-- has now; null: there is none of that name.
CREATE OR REPLACE VIEW stray_replicas AS
SELECT p.cluster_id, p.broker_id, p.directory_id, p.captured_at, p.state, p.topic_name, p.topic_id, p.partition_id,
       p.kind, p.leader_epoch, t.topic_id AS assigned_topic_id
FROM broker_partitions p
LEFT JOIN topics t ON t.cluster_id = p.cluster_id AND t.topic_name = p.topic_name AND t.valid_to_offset IS NULL
WHERE p.state NOT IN ('assigned', 'undecided');

-- Which configs changed, from what to what? after null: deleted, or, if redacted, a secret. Not exact: only a snapshot
-- shows it; it happened at or before.
CREATE OR REPLACE VIEW config_changes AS
WITH versions AS (
  SELECT *,
         LAG(value) OVER same AS last_value, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM configs
  WINDOW same AS (PARTITION BY cluster_id, resource_type, resource_name, name ORDER BY valid_from_offset)
)
SELECT cluster_id, valid_from_offset AS `offset`, valid_from_at AS changed_at, resource_type, resource_name, name,
       CASE WHEN last_to = valid_from_offset THEN last_value END AS `before`, value AS `after`, redacted, record_type,
       commit_status, valid_from_exact AS is_exact, earliest_from_offset AS earliest_offset,
       earliest_from_at AS earliest_at
FROM versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, resource_type, resource_name, name, value, NULL, redacted, ended_by,
       end_commit_status, valid_to_exact, earliest_to_offset, earliest_to_at
FROM versions
WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset;

-- Which topics were created again under the name of a deleted one? Not exact: at or before, as a snapshot shows.
CREATE OR REPLACE VIEW recreated_topics AS
SELECT * FROM (
  SELECT cluster_id, topic_name, topic_id, valid_from_offset AS `offset`, valid_from_at AS created_at,
         LAG(topic_id) OVER same AS topic_id_before, LAG(valid_to_offset) OVER same AS deleted_offset,
         LAG(valid_to_at) OVER same AS deleted_at, commit_status,
         valid_from_exact AS is_exact, LAG(valid_to_exact) OVER same AS deleted_exact
  FROM topics
  WINDOW same AS (PARTITION BY cluster_id, topic_name ORDER BY valid_from_offset)
)
WHERE topic_id_before <> topic_id;

-- Which feature levels changed, metadata.version and kraft.version among them? level null: removed. Not exact: only a
-- snapshot shows it; it happened at or before.
CREATE OR REPLACE VIEW feature_changes AS
WITH versions AS (
  SELECT *, LAG(level) OVER same AS last_level, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM features
  WINDOW same AS (PARTITION BY cluster_id, name ORDER BY valid_from_offset)
)
SELECT cluster_id, valid_from_offset AS `offset`, valid_from_at AS changed_at, name,
       CASE WHEN last_to = valid_from_offset THEN last_level END AS level_before, level, commit_status,
       record_offset, valid_from_exact AS is_exact, earliest_from_offset AS earliest_offset,
       earliest_from_at AS earliest_at
FROM versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, name, level AS level_before, NULL AS level, end_commit_status,
       CASE WHEN valid_to_exact THEN valid_to_offset END AS record_offset, valid_to_exact, earliest_to_offset,
       earliest_to_at
FROM versions
WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT r.cluster_id, r.`offset`, r.appended_at, 'kraft.version', NULL, r.kraft_version.kraft_version, s.commit_status,
       r.`offset` AS record_offset, TRUE, NULL, NULL
FROM records r JOIN replays s
  ON s.cluster_id = r.cluster_id AND s.leader_epoch = r.leader_epoch AND s.content_digest IS NULL
 AND r.`offset` >= s.first_offset AND r.`offset` < s.end_offset
WHERE r.type = 'KRaftVersion';

-- Which metadata records were lost, truncated by a later leader?
CREATE OR REPLACE VIEW lost_records AS
SELECT r.cluster_id, r.`offset`, r.leader_epoch, r.type, r.appended_at, l.truncated_by_epoch, l.evidence
FROM records r JOIN log_ranges l
  ON l.cluster_id = r.cluster_id AND l.leader_epoch = r.leader_epoch
 AND r.`offset` >= l.first_offset AND r.`offset` < l.end_offset
WHERE l.commit_status = 'truncated' AND NOT r.is_control AND r.type <> 'NO_OP_RECORD';

-- Which partitions were created together: with their topic, or added to it later? One row per topic and batch, by the
-- leader's own time of it; per topic and metadata transaction or snapshot. Batches of one epoch and millisecond count as
-- one; nor is a batch one request: Kafka collects records for controller.quorum.append.linger.ms. Not exact: only a
-- snapshot shows them; at or before, and not before earliest_offset and earliest_at (null: not bounded).
CREATE OR REPLACE VIEW partition_batches AS
WITH created AS (
  -- Those of a transaction or a snapshot share together_offset. All others, whose records take effect at their own
  -- offsets, share batch_at.
  SELECT *, CASE WHEN record_offset = valid_from_offset THEN appended_at END AS batch_at,
         CASE WHEN record_offset = valid_from_offset THEN -1 ELSE valid_from_offset END AS together_offset
  FROM partitions WHERE record_type = 'PARTITION_RECORD'
), together AS (
  SELECT p.cluster_id, p.topic_id, p.record_leader_epoch, p.batch_at, p.together_offset, p.valid_from_at,
         MIN(p.valid_from_offset) AS first_offset, COUNT(*) AS partition_count,
         MIN(p.partition_id) AS first_partition, MAX(p.partition_id) AS last_partition,
         MAX(CASE WHEN p.partition_id = 0 THEN CAST(cardinality(p.replicas) AS INT) END) AS replication_factor,
         MAX(p.commit_status) AS commit_status, COUNT(p.known_from_offset) = 0 AS is_exact,
         MIN(p.earliest_from_offset) AS earliest_offset, MIN(p.earliest_from_at) AS earliest_at
  FROM created p
  LEFT JOIN (SELECT cluster_id, topic_id, partition_id, valid_to_offset
             FROM partitions WHERE NOT valid_to_exact) former
    ON former.cluster_id = p.cluster_id AND former.topic_id = p.topic_id AND former.partition_id = p.partition_id
   AND former.valid_to_offset = p.valid_from_offset
  WHERE former.topic_id IS NULL
  GROUP BY p.cluster_id, p.topic_id, p.record_leader_epoch, p.batch_at, p.together_offset, p.valid_from_at
)
SELECT p.cluster_id, p.topic_id, p.first_offset AS `offset`, p.valid_from_at AS changed_at, p.partition_count,
       p.first_partition, p.last_partition, p.replication_factor, t.topic_id IS NOT NULL AS with_topic,
       p.commit_status, p.is_exact, p.earliest_offset, p.earliest_at
FROM together p
LEFT JOIN topics t
  ON t.cluster_id = p.cluster_id AND t.topic_id = p.topic_id AND t.valid_from_at <=> p.valid_from_at
 AND (t.valid_from_offset = p.together_offset
      OR p.together_offset = -1 AND t.record_offset = t.valid_from_offset
         AND t.record_leader_epoch <=> p.record_leader_epoch AND t.appended_at <=> p.batch_at);

-- Which administrative operations took place (KIP-4), with the values before and after? Who requested them is not in
-- the log. Where is_exact is false only a snapshot shows it: it happened at or before `offset` and changed_at, and not
-- before earliest_offset and earliest_at (null: not bounded).
CREATE OR REPLACE VIEW admin_events AS
WITH config_texts AS (
  SELECT *, CASE WHEN redacted THEN '(secret)' ELSE value END AS shown FROM configs
), config_versions AS (
  SELECT *, LAG(shown) OVER same AS last_shown, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM config_texts
  WINDOW same AS (PARTITION BY cluster_id, resource_type, resource_name, name ORDER BY valid_from_offset)
), quota_texts AS (
  -- Both engines write the same digits, but exponents each in its own way, and for other numbers.
  SELECT *, CASE WHEN abs(value) >= 1e-5 AND abs(value) < 1e16 OR abs(value) = 0
                 THEN regexp_replace(CAST(CAST(CAST(value AS STRING) AS DECIMAL(38, 22)) AS STRING),
                                     '([.][0-9]+?)0*$', '$1')
                 ELSE regexp_replace(replace(upper(CAST(value AS STRING)), 'INFINITY', 'INF'),
                                     '^(-?[0-9])E', '$1.0E') END AS shown
  FROM client_quotas
), quota_versions AS (
  SELECT *, LAG(shown) OVER same AS last_shown, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM quota_texts WINDOW same AS (PARTITION BY cluster_id, entity_name, key ORDER BY valid_from_offset)
), scram_versions AS (
  SELECT *, LAG(valid_to_offset) OVER same AS last_to, LEAD(valid_from_offset) OVER same AS next_from
  FROM scram_users WINDOW same AS (PARTITION BY cluster_id, mechanism, name ORDER BY valid_from_offset)
), token_texts AS (
  -- A log may hold times that no calendar has.
  SELECT *, CASE WHEN expiration_timestamp BETWEEN 0 AND 253402300799999
                 THEN replace(CAST(from_unixtime(CAST(floor(expiration_timestamp / 1000) AS BIGINT)) AS STRING), 'T', ' ')
                      || '.' || lpad(CAST(expiration_timestamp % 1000 AS STRING), 3, '0')
                 ELSE expiration_timestamp || ' ms' END AS expires
  FROM delegation_tokens
), broker_versions AS (
  SELECT *, LEAD(valid_from_offset) OVER same AS next_from,
         CASE WHEN LAG(valid_to_offset) OVER same <=> valid_from_offset
              THEN LAG(broker_epoch) OVER same END AS last_epoch,
         LAG(fenced) OVER same AS was_fenced, LAG(in_controlled_shutdown) OVER same AS was_in_shutdown
  FROM brokers
  WINDOW same AS (PARTITION BY cluster_id, broker_id ORDER BY valid_from_offset)
), broker_events AS (
  SELECT *, 'register broker' AS operation, 'epoch ' || last_epoch AS `before`, 'epoch ' || broker_epoch AS `after`
  FROM broker_versions WHERE last_epoch IS NULL OR last_epoch <> broker_epoch
  UNION ALL
  SELECT *, CASE WHEN fenced THEN 'fence broker' ELSE 'unfence broker' END,
         CASE WHEN fenced THEN 'unfenced' ELSE 'fenced' END, CASE WHEN fenced THEN 'fenced' ELSE 'unfenced' END
  FROM broker_versions WHERE last_epoch = broker_epoch AND was_fenced <> fenced
  UNION ALL
  SELECT *, 'controlled shutdown', NULL, 'in controlled shutdown'
  FROM broker_versions WHERE last_epoch = broker_epoch AND in_controlled_shutdown AND NOT was_in_shutdown
), token_versions AS (
  SELECT *, LAG(expires) OVER same AS last_expires, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM token_texts WINDOW same AS (PARTITION BY cluster_id, token_digest ORDER BY valid_from_offset)
)
SELECT t.cluster_id, t.valid_from_offset AS `offset`, t.valid_from_at AS changed_at, 'create topic' AS operation,
       'TOPIC' AS resource_type, t.topic_name AS subject, CAST(NULL AS STRING) AS `before`,
       p.partition_count || CASE WHEN p.partition_count = 1 THEN ' partition' ELSE ' partitions' END
         || ', replication factor ' || p.replication_factor AS `after`, t.commit_status,
       t.valid_from_exact AS is_exact, t.earliest_from_offset AS earliest_offset, t.earliest_from_at AS earliest_at
FROM topics t
LEFT JOIN partition_batches p
  ON p.cluster_id = t.cluster_id AND p.topic_id = t.topic_id AND p.with_topic
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'delete topic', 'TOPIC', topic_name, topic_id, NULL, end_commit_status,
       valid_to_exact, earliest_to_offset, earliest_to_at
FROM topics WHERE ended_by = 'REMOVE_TOPIC_RECORD' OR NOT valid_to_exact
UNION ALL
SELECT p.cluster_id, p.`offset`, p.changed_at, 'add partitions', 'TOPIC', t.topic_name,
       p.first_partition || ' partitions', (p.last_partition + 1) || ' partitions', p.commit_status,
       p.is_exact, p.earliest_offset, p.earliest_at
FROM partition_batches p
JOIN topics t
  ON t.cluster_id = p.cluster_id AND t.topic_id = p.topic_id AND NOT p.with_topic
 AND p.`offset` >= t.valid_from_offset AND (t.valid_to_offset IS NULL OR p.`offset` < t.valid_to_offset)
UNION ALL
SELECT cluster_id, begun_offset, begun_at, 'reassign partition', 'PARTITION', topic_name || '-' || partition_id,
       '[' || array_join(replicas_before, ',') || ']', '[' || array_join(target_replicas, ',') || ']',
       commit_status, begun_exact, earliest_begun_offset, earliest_begun_at
FROM reassignments WHERE replicas_before IS NOT NULL OR NOT begun_exact
UNION ALL
SELECT cluster_id, done_offset, done_at, 'cancel reassignment', 'PARTITION', topic_name || '-' || partition_id,
       '[' || array_join(target_replicas, ',') || ']', '[' || array_join(replicas_after, ',') || ']',
       done_commit_status, done_exact, earliest_done_offset, earliest_done_at
FROM reassignments WHERE state = 'cancelled'
UNION ALL
SELECT cluster_id, `offset`, changed_at, CASE WHEN is_unclean THEN 'elect unclean leader' ELSE 'elect leader' END,
       'PARTITION', topic_name || '-' || partition_id, CAST(leader_before AS STRING), CAST(leader AS STRING),
       commit_status, is_exact, earliest_offset, earliest_at
FROM leader_changes
WHERE is_unclean OR cause IN ('preferred leader', 'elected')
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at, 'alter config', resource_type, resource_name || ' ' || name,
       CASE WHEN last_to = valid_from_offset THEN last_shown END, shown, commit_status,
       valid_from_exact, earliest_from_offset, earliest_from_at
FROM config_versions WHERE record_type = 'CONFIG_RECORD'
UNION ALL
SELECT v.cluster_id, v.valid_to_offset, v.valid_to_at, 'alter config', v.resource_type,
       v.resource_name || ' ' || v.name, v.shown, NULL, v.end_commit_status,
       v.valid_to_exact, v.earliest_to_offset, v.earliest_to_at
FROM config_versions v
LEFT JOIN (SELECT cluster_id, topic_name, valid_to_offset FROM topics WHERE NOT valid_to_exact) deleted
  ON deleted.cluster_id = v.cluster_id AND deleted.topic_name = v.resource_name
 AND deleted.valid_to_offset = v.valid_to_offset AND v.resource_type = 'TOPIC'
WHERE (v.ended_by = 'CONFIG_RECORD' OR NOT v.valid_to_exact AND deleted.topic_name IS NULL)
  AND NOT v.next_from <=> v.valid_to_offset
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at, 'create ACL', resource_type, resource_name, NULL,
       concat_ws(' ', permission_type, principal, operation, pattern_type, 'from', host), commit_status,
       valid_from_exact, earliest_from_offset, earliest_from_at
FROM acls
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'delete ACL', resource_type, resource_name,
       concat_ws(' ', permission_type, principal, operation, pattern_type, 'from', host), NULL, end_commit_status,
       valid_to_exact, earliest_to_offset, earliest_to_at
FROM acls WHERE valid_to_offset IS NOT NULL
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at, 'alter client quota', 'QUOTA', entity_name || ' ' || key,
       CASE WHEN last_to = valid_from_offset THEN last_shown END, shown, commit_status,
       valid_from_exact, earliest_from_offset, earliest_from_at
FROM quota_versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'alter client quota', 'QUOTA', entity_name || ' ' || key, shown, NULL,
       end_commit_status, valid_to_exact, earliest_to_offset, earliest_to_at
FROM quota_versions WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at, 'alter SCRAM credential', 'USER', name || ' ' || mechanism,
       CASE WHEN last_to = valid_from_offset THEN 'set' END, 'set', commit_status,
       valid_from_exact, earliest_from_offset, earliest_from_at
FROM scram_versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'delete SCRAM credential', 'USER', name || ' ' || mechanism, 'set',
       NULL, end_commit_status, valid_to_exact, earliest_to_offset, earliest_to_at
FROM scram_versions WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at,
       CASE WHEN last_to = valid_from_offset THEN 'renew delegation token' ELSE 'create delegation token' END, 'TOKEN',
       owner, CASE WHEN last_to = valid_from_offset THEN last_expires END, expires, commit_status,
       valid_from_exact, earliest_from_offset, earliest_from_at
FROM token_versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'expire delegation token', 'TOKEN', owner, expires, NULL,
       end_commit_status, valid_to_exact, earliest_to_offset, earliest_to_at
FROM token_versions WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT cluster_id, `offset`, changed_at, 'update feature', 'FEATURE', name, CAST(level_before AS STRING),
       CAST(level AS STRING), commit_status, is_exact, earliest_offset, earliest_at
FROM feature_changes
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'unregister broker', 'BROKER', CAST(broker_id AS STRING),
       'epoch ' || broker_epoch, NULL, end_commit_status, valid_to_exact, earliest_to_offset, earliest_to_at
FROM broker_versions
WHERE ended_by = 'UNREGISTER_BROKER_RECORD' OR NOT valid_to_exact AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at, operation, 'BROKER', CAST(broker_id AS STRING), `before`, `after`,
       commit_status, valid_from_exact, earliest_from_offset, earliest_from_at
FROM broker_events;

-- Which registrations block a level of a feature that another node of the cluster already supports? Registrations of
-- nodes that are gone count until they are removed: kraftlake plan upgrade prints how. A node that registered no range of the
-- feature supports level 0 only. Controllers register from metadata.version 3.7-IV0 (15) on.
CREATE OR REPLACE VIEW upgrade_blockers AS
WITH nodes AS (
  SELECT cluster_id, 'broker' AS kind, broker_id AS node_id, fenced, features, commit_status
  FROM brokers WHERE valid_to_offset IS NULL
  UNION ALL
  SELECT cluster_id, 'controller', controller_id, NULL, features, commit_status
  FROM controllers WHERE valid_to_offset IS NULL
), ranges AS (
  SELECT cluster_id, kind, node_id, feature['name'] AS name, feature['min_supported_version'] AS min_supported_version,
         feature['max_supported_version'] AS max_supported_version
  FROM (SELECT cluster_id, kind, node_id, EXPLODE(features) AS feature FROM nodes)
), newest AS (
  SELECT cluster_id, name, MAX(max_supported_version) AS level FROM ranges GROUP BY cluster_id, name
)
SELECT n.cluster_id, w.name AS feature, w.level AS blocked_level, f.level AS finalized_level, n.kind, n.node_id,
       n.fenced, COALESCE(r.min_supported_version, CAST(0 AS SMALLINT)) AS min_supported_version,
       COALESCE(r.max_supported_version, CAST(0 AS SMALLINT)) AS max_supported_version, n.commit_status
FROM nodes n
JOIN newest w ON w.cluster_id = n.cluster_id
LEFT JOIN ranges r
  ON r.cluster_id = n.cluster_id AND r.kind = n.kind AND r.node_id = n.node_id AND r.name = w.name
LEFT JOIN features f ON f.cluster_id = n.cluster_id AND f.name = w.name AND f.valid_to_offset IS NULL
WHERE COALESCE(r.max_supported_version, CAST(0 AS SMALLINT)) < w.level
ORDER BY n.cluster_id, feature, n.kind, n.node_id;

-- Through which states did a migration from ZooKeeper go, and was it finished while brokers still ran in ZooKeeper mode?
-- is_restart: a state that came before in a migration followed a later one.
CREATE OR REPLACE VIEW zk_migrations AS
WITH states AS (
  SELECT cluster_id, `offset`, appended_at AS changed_at, commit_status,
         zk_migration_state['zk_migration_state'] AS state,
         LAG(zk_migration_state['zk_migration_state']) OVER (PARTITION BY cluster_id ORDER BY `offset`) AS former
  FROM record_status
  WHERE type = 'ZK_MIGRATION_STATE_RECORD' AND COALESCE(commit_status, '') <> 'truncated'
), migrating AS (
  SELECT s.cluster_id, s.`offset`, ARRAY_SORT(COLLECT_LIST(b.broker_id)) AS brokers_in_zk_mode
  FROM states s
  JOIN brokers b ON b.cluster_id = s.cluster_id AND b.is_migrating_zk_broker AND b.valid_from_offset <= s.`offset`
    AND COALESCE(b.valid_to_offset > s.`offset`, true)
  GROUP BY s.cluster_id, s.`offset`
)
SELECT s.cluster_id, s.`offset`, s.changed_at,
       CASE s.state WHEN 0 THEN 'NONE' WHEN 1 THEN 'MIGRATION' WHEN 2 THEN 'PRE_MIGRATION' WHEN 3 THEN 'POST_MIGRATION'
                    ELSE 'unknown (' || s.state || ')' END AS state,
       COALESCE(m.brokers_in_zk_mode, array_except(ARRAY(CAST(1 AS INT)), ARRAY(CAST(1 AS INT)))) AS brokers_in_zk_mode,
       s.state = 3 AND m.brokers_in_zk_mode IS NOT NULL AS finished_early,
       COALESCE(s.former = 3 AND s.state <> 3 OR s.former = 1 AND s.state = 2, false) AS is_restart,
       s.commit_status
FROM states s
LEFT JOIN migrating m ON m.cluster_id = s.cluster_id AND m.`offset` = s.`offset`
ORDER BY s.cluster_id, s.`offset`;
