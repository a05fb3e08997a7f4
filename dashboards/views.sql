-- Views of the quorum: voters, leaders, the high watermark, replicas. The comment above each view is the question
-- that it answers.

-- Who could vote when, and was that set committed? One row per voter set, oldest first. in_force_from and in_force_to
-- are only "at or before" where their exact column is false: a snapshot, the next election or a report shows the set
-- first. Sets of source describe and quorum-state are only observed, from observed_from to observed_to.
CREATE OR REPLACE VIEW voter_history AS
SELECT cluster_id, `offset`, leader_epoch, source, voter_ids, majority, commit_status,
       truncated_by_epoch, in_force_from, in_force_to, in_force_from_offset, in_force_to_offset, evidence,
       in_force_from_exact, in_force_to_exact, observed_from, observed_to
FROM voter_sets
ORDER BY cluster_id, `offset`, leader_epoch;

-- Which voter set is in force in each cluster, by the newest capture?
CREATE OR REPLACE VIEW current_voters AS
SELECT cluster_id, `offset`, leader_epoch, source, voter_ids, voters, majority, commit_status, in_force_from,
       in_force_from_exact
FROM voter_sets
WHERE in_force_from_offset IS NOT NULL AND in_force_to_offset IS NULL AND COALESCE(commit_status, '') <> 'truncated';

-- Which membership changes are not committed (lost, pending or not proven)?
CREATE OR REPLACE VIEW membership_changes_not_committed AS
SELECT c.cluster_id, c.`offset`, c.leader_epoch, c.kind, c.voter_id, c.directory_id, c.changed_at,
       c.commit_status, s.truncated_by_epoch, s.evidence, c.changed_exact
FROM voter_changes c
LEFT JOIN voter_sets s
  ON s.cluster_id = c.cluster_id AND s.`offset` = c.`offset` AND s.leader_epoch = c.leader_epoch
 AND s.source IN ('record', 'snapshot')
WHERE c.commit_status <> 'committed';

-- Who led which epoch, who voted for it, and for how long, at most, was there no leader before? leader_source record
-- proves the leader; quorum-state and describe only report it. leaderless_ms is null if the captures do not cover that time.
CREATE OR REPLACE VIEW leader_timeline AS
SELECT cluster_id, leader_epoch, leader_id, start_offset, elected_at,
       LEAD(elected_at) OVER (PARTITION BY cluster_id ORDER BY leader_epoch) AS next_elected_at,
       granting_voters, leaderless_ms, leader_source, known_from, known_to, observed_from, observed_to
FROM epochs
ORDER BY cluster_id, leader_epoch;

-- Between which bounds was the high watermark at the last moment (as_of) with an upper bound? The lower bound holds since
-- lower_as_of. A higher one that holds only later is later_lower_bound, from later_lower_as_of on.
CREATE OR REPLACE VIEW watermark_bounds AS
WITH lowers AS (
  SELECT cluster_id, as_of, lower_bound, evidence FROM high_watermarks WHERE lower_bound IS NOT NULL
), highest AS (
  SELECT cluster_id, lower_bound, as_of AS begun_at
  FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cluster_id ORDER BY lower_bound DESC, as_of) AS nth FROM lowers)
  WHERE nth = 1
), lasts AS (
  SELECT h.cluster_id, COALESCE(h.capped_at, l.begun_at) AS as_of, l.lower_bound, l.begun_at
  FROM (SELECT cluster_id, MAX(CASE WHEN upper_bound IS NOT NULL THEN as_of END) AS capped_at
        FROM high_watermarks GROUP BY cluster_id) h
  LEFT JOIN highest l ON l.cluster_id = h.cluster_id
), thens AS (
  SELECT cluster_id, lower_bound, evidence AS lower_evidence, as_of AS lower_as_of
  FROM (SELECT l.*, ROW_NUMBER() OVER (PARTITION BY l.cluster_id
                                       ORDER BY l.lower_bound DESC, l.as_of, l.evidence) AS nth
        FROM lasts t JOIN lowers l ON l.cluster_id = t.cluster_id AND l.as_of <= t.as_of)
  WHERE nth = 1
)
SELECT t.cluster_id, t.as_of, n.lower_bound, n.lower_evidence, n.lower_as_of, u.latest_upper_bound, u.upper_as_of,
       CASE WHEN NOT t.lower_bound <=> n.lower_bound THEN t.lower_bound END AS later_lower_bound,
       CASE WHEN NOT t.lower_bound <=> n.lower_bound THEN t.begun_at END AS later_lower_as_of
FROM lasts t
LEFT JOIN thens n ON n.cluster_id = t.cluster_id
LEFT JOIN (SELECT h.cluster_id, MIN(h.upper_bound) AS latest_upper_bound, MAX(h.as_of) AS upper_as_of
           FROM lasts t JOIN high_watermarks h
             ON h.cluster_id = t.cluster_id AND h.upper_bound IS NOT NULL AND h.as_of >= t.as_of
           GROUP BY h.cluster_id) u ON u.cluster_id = t.cluster_id;

-- Up to which offset is each cluster's log proven committed? Everything below it can never be lost.
CREATE OR REPLACE VIEW committed_ends AS
SELECT cluster_id, MAX(end_offset) AS committed_end_offset
FROM log_ranges
WHERE commit_status = 'committed'
GROUP BY cluster_id;

-- Is a record committed? Every record with the commit status of its offset.
CREATE OR REPLACE VIEW record_status AS
SELECT r.*, l.commit_status, l.truncated_by_epoch
FROM records r
LEFT JOIN log_ranges l
  ON l.cluster_id = r.cluster_id AND l.leader_epoch = r.leader_epoch
 AND r.`offset` >= l.first_offset AND r.`offset` < l.end_offset;

-- Between which bounds did the high watermark lie at a given time? One row per interval between two proofs; from_at is
-- null before the first, to_at after the last. A null bound: nothing is proven on that side.
CREATE OR REPLACE VIEW high_watermark_timeline AS
WITH placed AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY cluster_id ORDER BY lower_bound, evidence, source, as_of) AS low_place,
         ROW_NUMBER() OVER (PARTITION BY cluster_id ORDER BY upper_bound, evidence, source, as_of) AS high_place
  FROM high_watermarks
),
times AS (
  SELECT cluster_id, as_of, MAX(CASE WHEN lower_bound IS NOT NULL THEN low_place END) AS low,
         MIN(CASE WHEN upper_bound IS NOT NULL THEN high_place END) AS high
  FROM placed
  GROUP BY cluster_id, as_of
),
intervals AS (
  SELECT cluster_id, as_of AS from_at, MIN(as_of) OVER later AS to_at,
         MAX(low) OVER earlier AS low,
         MIN(high) OVER later AS high
  FROM times
  WINDOW earlier AS (PARTITION BY cluster_id ORDER BY as_of ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
         later AS (PARTITION BY cluster_id ORDER BY as_of ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
  UNION ALL
  SELECT cluster_id, null, MIN(as_of), null, MIN(high) FROM times GROUP BY cluster_id
)
SELECT i.cluster_id, i.from_at, i.to_at, l.lower_bound, u.upper_bound,
       l.evidence AS lower_evidence, l.source AS lower_source,
       u.evidence AS upper_evidence, u.source AS upper_source
FROM intervals i
LEFT JOIN placed l ON l.cluster_id = i.cluster_id AND l.low_place = i.low
LEFT JOIN placed u ON u.cluster_id = i.cluster_id AND u.high_place = i.high
ORDER BY i.cluster_id, i.from_at NULLS FIRST;

-- Who could vote at a given time? One row per set: WHERE :time >= in_force_from AND (in_force_to IS NULL OR
-- :time < in_force_to). A truncated set was also in force, until its truncation. Not exact: at or before;
-- voters_at(cluster, time) returns what is proven for a time, and what else is known.
CREATE OR REPLACE VIEW voter_sets_in_force AS
SELECT cluster_id, in_force_from, in_force_to, `offset`, leader_epoch, source, voter_ids, majority, commit_status,
       truncated_by_epoch, in_force_from_exact, in_force_to_exact, observed_from, observed_to
FROM voter_sets
ORDER BY cluster_id, in_force_from NULLS FIRST, `offset`;

-- Which controllers flap? One row per controller that was elected three times, or added or removed three times, within
-- one hour.
CREATE OR REPLACE VIEW flapping_controllers AS
WITH turns AS (
  SELECT cluster_id, leader_id AS node_id, elected_at AS turned_at, 'elected' AS kind
  FROM epochs
  WHERE leader_id IS NOT NULL AND elected_at IS NOT NULL
  UNION ALL
  SELECT cluster_id, voter_id, changed_at, 'added or removed'
  FROM voter_changes
  WHERE kind IN ('added', 'removed') AND changed_at IS NOT NULL
),
hours AS (
  SELECT *, COUNT(*) OVER (PARTITION BY cluster_id, node_id, kind ORDER BY turned_at
                           RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) AS turns
  FROM turns
),
most AS (
  SELECT *, MAX(turns) OVER (PARTITION BY cluster_id, node_id, kind) AS most_turns FROM hours
)
SELECT cluster_id, node_id, kind, MAX(turns) AS turns_in_an_hour,
       MAX(CASE WHEN turns = most_turns THEN turned_at END) AS until
FROM most
GROUP BY cluster_id, node_id, kind
HAVING MAX(turns) >= 3
ORDER BY cluster_id, turns_in_an_hour DESC;

-- How far behind was each replica at its last capture? lag_records is relative to the longest log that had been captured
-- or followed by then; there may have been a longer one.
CREATE OR REPLACE VIEW replica_lag AS
WITH known AS (
  SELECT *, MAX(log_end_offset) OVER (PARTITION BY cluster_id ORDER BY captured_at
                                      RANGE UNBOUNDED PRECEDING) AS longest_log_end,
         ROW_NUMBER() OVER (PARTITION BY cluster_id, node_id, directory_id
                            ORDER BY captured_at DESC, capture_id) AS nth
  FROM captures
)
SELECT k.cluster_id, k.node_id, k.directory_id, k.captured_at, k.log_end_offset, k.last_leader_epoch,
       k.longest_log_end - k.log_end_offset AS lag_records,
       ARRAY_CONTAINS(v.voter_ids, k.node_id) AS is_voter
FROM known k
LEFT JOIN current_voters v ON v.cluster_id = k.cluster_id
WHERE k.nth = 1 AND k.node_id >= 0
ORDER BY k.cluster_id, lag_records DESC, k.node_id;

-- Which expectations are met? The newest result of each. Every validation evaluates all of a user's own expectations:
-- those missing from the newest one are no longer in the settings.
CREATE OR REPLACE VIEW expectations_now AS
SELECT cluster_id, suite, expectation, sentence, severity, success, observed, allowed, failing_rows, is_own, run_id,
       loaded_at
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cluster_id, suite, expectation
                                   ORDER BY loaded_at DESC, run_id) AS nth
      FROM expectation_results)
LEFT JOIN (SELECT MAX_BY(run_id, loaded_at) AS newest_run_id
           FROM expectation_results WHERE suite = 'runs' AND expectation = 'key_is_unique') ON TRUE
WHERE nth = 1 AND (NOT is_own OR run_id = newest_run_id)
ORDER BY success, severity, cluster_id, suite, expectation;

-- Which clusters are in the lake, when were they last captured, and who leads? Where failure is not null, deriving from
-- the newest captures failed, and the cluster's tables are older.
CREATE OR REPLACE VIEW clusters AS
SELECT c.cluster_id, n.name, n.environment, n.owner, c.captures, c.last_captured_at,
       e.leader_epoch, e.leader_id, v.voter_ids, d.failure, e.leader_source, l.is_newest AS is_newest_life
FROM (SELECT cluster_id, COUNT(*) AS captures, MAX(last_captured_at) AS last_captured_at
      FROM captures GROUP BY cluster_id) c
LEFT JOIN cluster_names n ON n.cluster_id = c.cluster_id
LEFT JOIN (SELECT cluster_id, MAX(leader_epoch) AS leader_epoch, MAX_BY(leader_id, leader_epoch) AS leader_id,
                  MAX_BY(leader_source, leader_epoch) AS leader_source
           FROM epochs GROUP BY cluster_id) e ON e.cluster_id = c.cluster_id
LEFT JOIN current_voters v ON v.cluster_id = c.cluster_id
LEFT JOIN derivations d ON d.cluster_id = c.cluster_id
LEFT JOIN lives l ON l.cluster_id = c.cluster_id
ORDER BY n.name NULLS LAST, c.cluster_id;

-- What grows? The bytes of the log per day, by record type, topic and cause. A record's bytes are its own key and value,
-- and an even share of the rest of its batch; the rows of a cluster add up to its distinct batches. topic_name is null
-- for records that concern no topic, or one whose TopicRecord was not captured.
CREATE OR REPLACE VIEW log_growth AS
WITH caused AS (
  SELECT cluster_id, batch_base_offset, leader_epoch, batch_crc, `offset`, type, CAST(appended_at AS DATE) AS day,
         GREATEST(key_size_bytes, 0) + GREATEST(value_size_bytes, 0) AS own_bytes,
         COALESCE(topic['topic_id'], `partition`['topic_id'], partition_change['topic_id'],
                  remove_topic['topic_id']) AS topic_id,
         CASE WHEN config['resource_type'] = 2 THEN config['resource_name']
              ELSE clear_elr['topic_name'] END AS named_topic,
         CASE WHEN is_control THEN 'quorum'
              WHEN type = 'NO_OP_RECORD' THEN 'idle leader'
              WHEN type IN ('TOPIC_RECORD', 'PARTITION_RECORD', 'REMOVE_TOPIC_RECORD') THEN 'topics'
              WHEN partition_change['replicas'] IS NOT NULL OR partition_change['adding_replicas'] IS NOT NULL
                OR partition_change['removing_replicas'] IS NOT NULL THEN 'reassignment'
              WHEN partition_change['leader'] <> -2 THEN 'leader change'
              WHEN partition_change['isr'] IS NOT NULL THEN 'ISR change'
              WHEN type IN ('PARTITION_CHANGE_RECORD', 'CLEAR_ELR_RECORD') THEN 'replica state'
              WHEN broker_registration_change['fenced'] = 1 OR type = 'FENCE_BROKER_RECORD' THEN 'broker fenced'
              WHEN broker_registration_change['fenced'] = -1 OR type = 'UNFENCE_BROKER_RECORD' THEN 'broker unfenced'
              WHEN broker_registration_change['in_controlled_shutdown'] = 1 THEN 'controlled shutdown'
              WHEN type IN ('REGISTER_BROKER_RECORD', 'UNREGISTER_BROKER_RECORD', 'BROKER_REGISTRATION_CHANGE_RECORD',
                              'REGISTER_CONTROLLER_RECORD', 'UNREGISTER_CONTROLLER_RECORD') THEN 'registrations'
              WHEN type = 'CONFIG_RECORD' THEN 'configs'
              WHEN type = 'PRODUCER_IDS_RECORD' THEN 'producer ids'
              WHEN type IN ('FEATURE_LEVEL_RECORD', 'REMOVE_FEATURE_LEVEL_RECORD', 'ZK_MIGRATION_STATE_RECORD')
                THEN 'features'
              WHEN type IN ('BEGIN_TRANSACTION_RECORD', 'END_TRANSACTION_RECORD', 'ABORT_TRANSACTION_RECORD')
                THEN 'metadata transactions'
              WHEN type LIKE '%ACCESS_CONTROL%' THEN 'ACLs'
              WHEN type = 'CLIENT_QUOTA_RECORD' THEN 'quotas'
              WHEN type LIKE '%SCRAM%' OR type LIKE '%DELEGATION_TOKEN%' THEN 'credentials'
              ELSE 'unknown' END AS cause
  FROM records
), wholes AS (
  SELECT cluster_id, batch_base_offset, leader_epoch, batch_crc, COUNT(*) AS records,
         SUM(GREATEST(key_size_bytes, 0) + GREATEST(value_size_bytes, 0)) AS own_bytes
  FROM records GROUP BY cluster_id, batch_base_offset, leader_epoch, batch_crc
), sized AS (
  SELECT cluster_id, base_offset, leader_epoch, crc, MAX(size_bytes) AS size_bytes
  FROM batches GROUP BY cluster_id, base_offset, leader_epoch, crc
), shares AS (
  SELECT w.cluster_id, w.batch_base_offset, w.leader_epoch, w.batch_crc,
         CAST(s.size_bytes - w.own_bytes AS DOUBLE) / w.records AS share
  FROM wholes w
  JOIN sized s ON s.cluster_id = w.cluster_id AND s.base_offset = w.batch_base_offset
    AND s.leader_epoch = w.leader_epoch AND s.crc = w.batch_crc
), named AS (
  SELECT cluster_id, topic_id, MAX(topic_name) AS topic_name FROM topics GROUP BY cluster_id, topic_id
)
SELECT c.cluster_id, c.day, c.type, COALESCE(n.topic_name, c.named_topic) AS topic_name, c.cause,
       COUNT(*) AS records, CAST(ROUND(SUM(c.own_bytes + h.share)) AS BIGINT) AS size_bytes,
       MIN(c.`offset`) AS first_offset, MAX(c.`offset`) AS last_offset
FROM caused c
JOIN shares h ON h.cluster_id = c.cluster_id AND h.batch_base_offset = c.batch_base_offset
  AND h.leader_epoch = c.leader_epoch AND h.batch_crc = c.batch_crc
LEFT JOIN named n ON n.cluster_id = c.cluster_id AND n.topic_id = c.topic_id
GROUP BY c.cluster_id, c.day, c.type, COALESCE(n.topic_name, c.named_topic), c.cause;

-- Are snapshots taken and old ones deleted? One row per replica, by its newest capture. By Kafka's defaults a replica
-- takes a snapshot after 20 MiB or an hour of new records, and deletes older ones after 7 days or beyond 100 MiB; the
-- node's own settings are not captured, so that nothing here proves a fault.
CREATE OR REPLACE VIEW log_space AS
WITH newest AS (
  SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY cluster_id, node_id, directory_id
                                              ORDER BY captured_at DESC, capture_id) AS nth FROM captures)
  WHERE nth = 1 AND node_id >= 0
), held AS (
  SELECT cluster_id, capture_id, EXPLODE(snapshots) AS held FROM newest
), kept AS (
  SELECT h.cluster_id, h.capture_id, COUNT(*) AS snapshots, SUM(s.size_bytes) AS snapshot_bytes,
         MAX(s.end_offset) AS snapshot_end_offset, MIN(s.header_at) AS oldest_snapshot_at
  FROM held h
  JOIN snapshots s ON s.cluster_id = h.cluster_id AND s.end_offset = h.held['end_offset']
    AND s.leader_epoch = h.held['leader_epoch'] AND s.content_digest = h.held['content_digest']
  WHERE s.kind = 'snapshot'
  GROUP BY h.cluster_id, h.capture_id
), logs AS (
  SELECT capture_id, COUNT(*) AS segments, SUM(size_bytes) AS log_bytes FROM segments GROUP BY capture_id
), since AS (
  SELECT n.capture_id, SUM(b.size_bytes) AS new_bytes, MIN(b.appended_at) AS new_since
  FROM newest n
  LEFT JOIN kept k ON k.capture_id = n.capture_id
  JOIN batches b ON b.cluster_id = n.cluster_id AND b.node_id = n.node_id AND b.directory_id = n.directory_id
  WHERE b.base_offset >= COALESCE(k.snapshot_end_offset, 0) AND b.last_offset < n.log_end_offset
  GROUP BY n.capture_id
), joined AS (
  SELECT n.cluster_id, n.node_id, n.directory_id, n.captured_at, n.log_start_offset, n.log_end_offset,
         COALESCE(l.segments, 0) AS segments, COALESCE(l.log_bytes, 0) AS log_bytes,
         COALESCE(k.snapshots, 0) AS snapshots, COALESCE(k.snapshot_bytes, 0) AS snapshot_bytes,
         k.snapshot_end_offset, k.oldest_snapshot_at, COALESCE(s.new_bytes, 0) AS new_bytes, s.new_since,
         UNIX_MILLIS(captured_at) - UNIX_MILLIS(new_since) AS new_ms,
         UNIX_MILLIS(captured_at) - UNIX_MILLIS(oldest_snapshot_at) AS oldest_snapshot_ms
  FROM newest n
  LEFT JOIN logs l ON l.capture_id = n.capture_id
  LEFT JOIN kept k ON k.capture_id = n.capture_id
  LEFT JOIN since s ON s.capture_id = n.capture_id
)
SELECT *, COALESCE(new_bytes > 20971520 OR new_ms > 3600000, false) AS snapshot_is_late,
       COALESCE(snapshots > 1 AND (log_bytes + snapshot_bytes > 104857600 OR oldest_snapshot_ms > 604800000), false)
         AS deletion_is_late
FROM joined;

-- Was each controller's directory formatted as one of an initial voter, as far as its captures show it? only voter: by
-- kafka-storage format --standalone, or --initial-controllers with itself alone, which write the same. initial voter: by
-- --initial-controllers. no voter: by --no-initial-controllers, or for a static quorum, whose voters are in its nodes'
-- files. null: later snapshots may have replaced the checkpoint that would show it.
CREATE OR REPLACE VIEW formatted_directories AS
WITH held AS (
  SELECT cluster_id, capture_id, node_id, directory_id, EXPLODE(snapshots) AS held FROM captures WHERE node_id >= 0
), kept AS (
  SELECT h.*, s.voters, s.kind IS NULL OR s.kind <> 'bootstrap' OR NOT s.complete AS is_in_doubt
  FROM held h
  LEFT JOIN snapshots s ON s.cluster_id = h.cluster_id AND s.end_offset = h.held['end_offset']
    AND s.leader_epoch = h.held['leader_epoch'] AND s.content_digest = h.held['content_digest']
), named AS (
  SELECT cluster_id, node_id, directory_id, EXPLODE(voters) AS voter FROM kept WHERE NOT is_in_doubt
), voters AS (
  SELECT cluster_id, node_id, directory_id, COUNT(DISTINCT voter['voter_id']) AS initial_voters,
         MAX(CASE WHEN voter['voter_id'] = node_id AND voter['directory_id'] = directory_id THEN 1 ELSE 0 END) AS own
  FROM named GROUP BY cluster_id, node_id, directory_id
), doubts AS (
  SELECT capture_id, COUNT(CASE WHEN is_in_doubt THEN 1 END) AS doubts FROM kept GROUP BY capture_id
), whole AS (
  SELECT c.cluster_id, c.node_id, c.directory_id, MIN(c.captured_at) AS first_captured_at,
         MAX(CASE WHEN c.log_readable AND c.log_start_offset = 0 AND COALESCE(d.doubts, 0) = 0 THEN 1 ELSE 0 END)
           AS is_from_the_start
  FROM captures c LEFT JOIN doubts d ON d.capture_id = c.capture_id
  WHERE c.node_id >= 0
  GROUP BY c.cluster_id, c.node_id, c.directory_id
)
SELECT w.cluster_id, w.node_id, w.directory_id, w.first_captured_at,
       CASE WHEN v.own = 1 AND v.initial_voters = 1 THEN 'only voter'
            WHEN v.own = 1 THEN 'initial voter'
            WHEN v.own = 0 OR w.is_from_the_start = 1 THEN 'no voter' END AS formatted_as, v.initial_voters
FROM whole w
LEFT JOIN voters v ON v.cluster_id = w.cluster_id AND v.node_id = w.node_id AND v.directory_id = w.directory_id;
