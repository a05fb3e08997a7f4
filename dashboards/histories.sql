-- Questions about the cluster's metadata over time, answered from the histories. One statement a view; the comment
-- above each says what it answers. The *_now and *_committed views and the functions *_as_of and *_at of every
-- history are made by open_lake.

-- How did each partition change, version by version, with what stood before? Truncated changes are not in it.
CREATE OR REPLACE VIEW partition_changes AS
SELECT *,
       LAG(struct(leader, isr, replicas, adding_replicas, removing_replicas, eligible_leader_replicas))
         OVER (PARTITION BY cluster_id, topic_id, partition_id ORDER BY valid_from_offset) AS `before`
FROM partitions;

-- When did leadership move, from which broker to which, and had the broker before caused it (fenced, in controlled
-- shutdown, unregistered)? caused_by_broker is null for elections that no broker's leaving caused. Unclean: Kafka says
-- RECOVERING, or (before release 3.2) the leader was neither in the ISR nor in the ELR nor just being added.
CREATE OR REPLACE VIEW leader_changes AS
SELECT c.cluster_id, c.topic_id, c.topic_name, c.partition_id, c.valid_from_offset AS `offset`,
       c.valid_from_at AS changed_at, c.`before`.leader AS leader_before, c.leader, c.leader_epoch,
       CASE WHEN c.`before`.leader = -1 THEN 'leader found'
            WHEN b.broker_id IS NULL THEN 'unregistered'
            WHEN b.fenced THEN 'fenced'
            WHEN b.in_controlled_shutdown THEN 'controlled shutdown'
            WHEN c.leader = c.replicas[0] THEN 'preferred leader'
            ELSE 'elected' END AS cause,
       CASE WHEN c.`before`.leader <> -1 AND (b.broker_id IS NULL OR b.fenced OR b.in_controlled_shutdown)
            THEN c.`before`.leader END AS caused_by_broker,
       c.leader <> -1 AND (c.leader_recovery_state = 'RECOVERING'
         OR NOT array_contains(array_union(c.`before`.isr, c.`before`.eligible_leader_replicas), c.leader)
            AND NOT array_contains(c.`before`.adding_replicas, c.leader)) AS is_unclean,
       c.commit_status
FROM partition_changes c
LEFT JOIN brokers b
  ON b.cluster_id = c.cluster_id AND b.broker_id = c.`before`.leader
 AND b.valid_from_at <= c.valid_from_at AND (b.valid_to_at IS NULL OR b.valid_to_at > c.valid_from_at)
WHERE c.`before`.leader <> c.leader;

-- Which elections may have lost records: leaders from outside of the ISR and of the ELR?
CREATE OR REPLACE VIEW unclean_elections AS
SELECT * FROM leader_changes WHERE is_unclean;

-- Which reassignments were there (KIP-455), of which replicas, when begun and when done? done_offset null: it runs.
CREATE OR REPLACE VIEW reassignments AS
WITH marked AS (
  SELECT *, size(adding_replicas) + size(removing_replicas) > 0 AS moving FROM partition_changes
), runs AS (
  SELECT *, SUM(IF(moving AND NOT COALESCE(size(`before`.adding_replicas) + size(`before`.removing_replicas) > 0,
                                           false), 1, 0))
              OVER (PARTITION BY cluster_id, topic_id, partition_id ORDER BY valid_from_offset) AS run
  FROM marked
)
SELECT cluster_id, topic_id, MAX(topic_name) AS topic_name, partition_id,
       MIN(valid_from_offset) AS begun_offset, MIN(valid_from_at) AS begun_at,
       NULLIF(MAX(COALESCE(valid_to_offset, 9223372036854775807)), 9223372036854775807) AS done_offset,
       IF(COUNT_IF(valid_to_offset IS NULL) > 0, NULL, MAX(valid_to_at)) AS done_at,
       MIN_BY(`before`.replicas, valid_from_offset) AS replicas_before,
       array_distinct(flatten(collect_list(adding_replicas))) AS added_replicas,
       array_distinct(flatten(collect_list(removing_replicas))) AS removed_replicas,
       MAX_BY(ended_by, valid_from_offset) AS ended_by, MAX(commit_status) AS commit_status
FROM runs WHERE moving
GROUP BY cluster_id, topic_id, partition_id, run;

-- Which min.insync.replicas was in force for a topic, from where to where? The topic's own, else the cluster's
-- default in the metadata log, else 1 (a broker's own server.properties is not in the log).
CREATE OR REPLACE VIEW min_isr_periods AS
WITH settings AS (
  SELECT cluster_id, resource_type, resource_name, CAST(value AS INT) AS min_isr, valid_from_offset, valid_to_offset,
         valid_from_at, valid_to_at
  FROM configs
  WHERE name = 'min.insync.replicas' AND (resource_type = 'TOPIC' OR resource_type = 'BROKER' AND resource_name = '')
), turns AS (
  SELECT cluster_id, resource_name, resource_type, valid_from_offset AS `offset`, valid_from_at AS at FROM settings
  UNION ALL
  SELECT cluster_id, resource_name, resource_type, valid_to_offset, valid_to_at FROM settings
  WHERE valid_to_offset IS NOT NULL
), points AS (
  SELECT cluster_id, topic_id, name, valid_from_offset AS `offset`, valid_from_at AS at FROM topics
  UNION
  SELECT t.cluster_id, t.topic_id, t.name, s.`offset`, s.at
  FROM topics t JOIN turns s
    ON s.cluster_id = t.cluster_id AND (s.resource_type = 'BROKER' OR s.resource_name = t.name)
   AND s.`offset` > t.valid_from_offset AND (t.valid_to_offset IS NULL OR s.`offset` < t.valid_to_offset)
)
SELECT p.cluster_id, p.topic_id, p.name AS topic_name, COALESCE(own.min_isr, shared.min_isr, 1) AS min_isr,
       p.`offset` AS from_offset, p.at AS from_at,
       LEAD(p.`offset`) OVER (PARTITION BY p.cluster_id, p.topic_id ORDER BY p.`offset`) AS to_offset,
       LEAD(p.at) OVER (PARTITION BY p.cluster_id, p.topic_id ORDER BY p.`offset`) AS to_at
FROM points p
LEFT JOIN settings own
  ON own.cluster_id = p.cluster_id AND own.resource_type = 'TOPIC' AND own.resource_name = p.name
 AND own.valid_from_offset <= p.`offset` AND (own.valid_to_offset IS NULL OR own.valid_to_offset > p.`offset`)
LEFT JOIN settings shared
  ON shared.cluster_id = p.cluster_id AND shared.resource_type = 'BROKER'
 AND shared.valid_from_offset <= p.`offset`
 AND (shared.valid_to_offset IS NULL OR shared.valid_to_offset > p.`offset`);

-- Which partitions were under min ISR, from when to when, for how long? to_offset null: they still are.
CREATE OR REPLACE VIEW under_min_isr AS
WITH pieces AS (
  SELECT p.cluster_id, p.topic_id, p.topic_name, p.partition_id, p.isr, p.commit_status,
         LEAST(m.min_isr, size(p.replicas)) AS min_isr,
         GREATEST(p.valid_from_offset, m.from_offset) AS from_offset, GREATEST(p.valid_from_at, m.from_at) AS from_at,
         LEAST(p.valid_to_offset, m.to_offset) AS to_offset, LEAST(p.valid_to_at, m.to_at) AS to_at
  FROM partitions p JOIN min_isr_periods m
    ON m.cluster_id = p.cluster_id AND m.topic_id = p.topic_id
   AND m.from_offset < COALESCE(p.valid_to_offset, 9223372036854775807)
   AND p.valid_from_offset < COALESCE(m.to_offset, 9223372036854775807)
), below AS (
  SELECT *, LAG(to_offset) OVER (PARTITION BY cluster_id, topic_id, partition_id ORDER BY from_offset) AS last_to
  FROM pieces WHERE size(isr) < min_isr
), runs AS (
  SELECT *, SUM(IF(last_to <=> from_offset, 0, 1))
              OVER (PARTITION BY cluster_id, topic_id, partition_id ORDER BY from_offset) AS run
  FROM below
), told AS (
  SELECT cluster_id, topic_id, MAX(topic_name) AS topic_name, partition_id, MIN(from_offset) AS from_offset,
         IF(COUNT_IF(to_offset IS NULL) > 0, NULL, MAX(to_offset)) AS to_offset, MIN(from_at) AS from_at,
         IF(COUNT_IF(to_offset IS NULL) > 0, NULL, MAX(to_at)) AS to_at, MIN(size(isr)) AS least_isr,
         MAX_BY(isr, from_offset) AS isr, MAX_BY(min_isr, from_offset) AS min_isr,
         MAX(commit_status) AS commit_status
  FROM runs GROUP BY cluster_id, topic_id, partition_id, run
)
SELECT *, UNIX_MILLIS(to_at) - UNIX_MILLIS(from_at) AS under_ms FROM told;

-- When was which broker fenced, and for how long? to_offset null: it still is.
CREATE OR REPLACE VIEW fenced_times AS
WITH marked AS (
  SELECT *, LAG(valid_to_offset) OVER (PARTITION BY cluster_id, broker_id ORDER BY valid_from_offset) AS last_to
  FROM brokers WHERE fenced
), runs AS (
  SELECT *, SUM(IF(last_to <=> valid_from_offset, 0, 1))
              OVER (PARTITION BY cluster_id, broker_id ORDER BY valid_from_offset) AS run
  FROM marked
), told AS (
  SELECT cluster_id, broker_id, MIN(valid_from_offset) AS from_offset,
         IF(COUNT_IF(valid_to_offset IS NULL) > 0, NULL, MAX(valid_to_offset)) AS to_offset,
         MIN(valid_from_at) AS from_at, IF(COUNT_IF(valid_to_offset IS NULL) > 0, NULL, MAX(valid_to_at)) AS to_at,
         MIN_BY(record_type, valid_from_offset) AS fenced_by, MAX_BY(ended_by, valid_from_offset) AS ended_by,
         MAX(commit_status) AS commit_status
  FROM runs GROUP BY cluster_id, broker_id, run
)
SELECT *, UNIX_MILLIS(to_at) - UNIX_MILLIS(from_at) AS fenced_ms FROM told;

-- Which configurations changed, from what to what? after null: deleted (or a secret: then redacted says so).
CREATE OR REPLACE VIEW config_changes AS
WITH versions AS (
  SELECT *,
         LAG(value) OVER same AS last_value, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM configs
  WINDOW same AS (PARTITION BY cluster_id, resource_type, resource_name, name ORDER BY valid_from_offset)
)
SELECT cluster_id, valid_from_offset AS `offset`, valid_from_at AS changed_at, resource_type, resource_name, name,
       IF(last_to <=> valid_from_offset, last_value, NULL) AS `before`, value AS `after`, redacted, record_type,
       commit_status
FROM versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, resource_type, resource_name, name, value, NULL, redacted, ended_by,
       end_commit_status
FROM versions
WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset;

-- Which topics were created again under a name that another id had?
CREATE OR REPLACE VIEW recreated_topics AS
SELECT * FROM (
  SELECT cluster_id, name, topic_id, valid_from_offset AS `offset`, valid_from_at AS created_at,
         LAG(topic_id) OVER same AS topic_id_before, LAG(valid_to_offset) OVER same AS deleted_offset,
         LAG(valid_to_at) OVER same AS deleted_at, commit_status
  FROM topics
  WINDOW same AS (PARTITION BY cluster_id, name ORDER BY valid_from_offset)
)
WHERE topic_id_before <> topic_id;

-- Which feature levels changed, metadata.version and kraft.version among them? level null: withdrawn.
CREATE OR REPLACE VIEW feature_changes AS
WITH versions AS (
  SELECT *, LAG(level) OVER same AS last_level, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM features
  WINDOW same AS (PARTITION BY cluster_id, name ORDER BY valid_from_offset)
)
SELECT cluster_id, valid_from_offset AS `offset`, valid_from_at AS changed_at, name,
       IF(last_to <=> valid_from_offset, last_level, NULL) AS level_before, level, commit_status
FROM versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, name, level, NULL, end_commit_status
FROM versions
WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT r.cluster_id, r.`offset`, r.appended_at, 'kraft.version', NULL, r.kraft_version.kraft_version, s.commit_status
FROM records r JOIN replays s
  ON s.cluster_id = r.cluster_id AND s.leader_epoch = r.leader_epoch AND s.content_digest IS NULL
 AND r.`offset` >= s.first_offset AND r.`offset` < s.end_offset
WHERE r.type = 'KRaftVersion';

-- Which metadata records were lost: truncated by a later leader?
CREATE OR REPLACE VIEW lost_records AS
SELECT r.cluster_id, r.`offset`, r.leader_epoch, r.type, r.appended_at, l.truncated_by_epoch, l.evidence
FROM records r JOIN log_ranges l
  ON l.cluster_id = r.cluster_id AND l.leader_epoch = r.leader_epoch
 AND r.`offset` >= l.first_offset AND r.`offset` < l.end_offset
WHERE l.commit_status = 'truncated' AND NOT r.is_control AND r.type <> 'NO_OP_RECORD';

-- What was done to the cluster, in the words of KIP-4, with before and after? Who did it is not in the log.
CREATE OR REPLACE VIEW admin_events AS
WITH lives AS (
  SELECT t.cluster_id, t.topic_id, t.name, t.valid_from_offset, t.valid_from_at, t.commit_status,
         COUNT(p.partition_id) AS partition_count, MAX(size(p.replicas)) AS replication_factor
  FROM topics t LEFT JOIN partitions p
    ON p.cluster_id = t.cluster_id AND p.topic_id = t.topic_id AND p.valid_from_at = t.valid_from_at
   AND p.record_type = 'PARTITION_RECORD'
  GROUP BY ALL
), added AS (
  SELECT p.cluster_id, p.topic_name, p.valid_from_at, p.commit_status, MIN(p.valid_from_offset) AS `offset`,
         MIN(p.partition_id) AS first_partition, MAX(p.partition_id) AS last_partition
  FROM partitions p JOIN topics t
    ON t.cluster_id = p.cluster_id AND t.topic_id = p.topic_id AND p.valid_from_at > t.valid_from_at
   AND p.valid_from_offset >= t.valid_from_offset
   AND (t.valid_to_offset IS NULL OR p.valid_from_offset < t.valid_to_offset)
  WHERE p.record_type = 'PARTITION_RECORD' AND p.record_offset IS NOT NULL
  GROUP BY p.cluster_id, p.topic_name, p.valid_from_at, p.commit_status
), quota_versions AS (
  SELECT *, LAG(value) OVER same AS last_value, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM client_quotas WINDOW same AS (PARTITION BY cluster_id, entity_name, key ORDER BY valid_from_offset)
), scram_versions AS (
  SELECT *, LAG(valid_to_offset) OVER same AS last_to, LEAD(valid_from_offset) OVER same AS next_from
  FROM scram_users WINDOW same AS (PARTITION BY cluster_id, mechanism, name ORDER BY valid_from_offset)
), token_versions AS (
  SELECT *, LAG(expiration_timestamp) OVER same AS last_expiration, LAG(valid_to_offset) OVER same AS last_to,
         LEAD(valid_from_offset) OVER same AS next_from
  FROM delegation_tokens WINDOW same AS (PARTITION BY cluster_id, token_digest ORDER BY valid_from_offset)
)
SELECT cluster_id, valid_from_offset AS `offset`, valid_from_at AS changed_at, 'create topic' AS operation,
       'TOPIC' AS resource_type, name AS resource, CAST(NULL AS STRING) AS `before`,
       concat(partition_count, ' partitions, replication factor ', replication_factor) AS `after`, commit_status
FROM lives
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'delete topic', 'TOPIC', name, topic_id, NULL, end_commit_status
FROM topics WHERE ended_by = 'REMOVE_TOPIC_RECORD'
UNION ALL
SELECT cluster_id, `offset`, valid_from_at, 'add partitions', 'TOPIC', topic_name,
       concat(first_partition, ' partitions'), concat(last_partition + 1, ' partitions'), commit_status
FROM added
UNION ALL
SELECT cluster_id, begun_offset, begun_at, 'reassign partition', 'PARTITION', concat(topic_name, '-', partition_id),
       to_json(replicas_before), concat('adding ', to_json(added_replicas), ', removing ', to_json(removed_replicas)),
       commit_status
FROM reassignments
UNION ALL
SELECT cluster_id, `offset`, changed_at, IF(is_unclean, 'elect unclean leader', 'elect leader'), 'PARTITION',
       concat(topic_name, '-', partition_id), CAST(leader_before AS STRING), CAST(leader AS STRING), commit_status
FROM leader_changes
WHERE is_unclean OR cause IN ('preferred leader', 'elected')
UNION ALL
SELECT cluster_id, `offset`, changed_at, 'alter config', resource_type, concat(resource_name, ' ', name), `before`,
       `after`, commit_status
FROM config_changes WHERE record_type = 'CONFIG_RECORD'
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at, 'create ACL', resource_type, resource_name, NULL,
       concat_ws(' ', permission_type, principal, operation, pattern_type, 'from', host), commit_status
FROM acls
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'delete ACL', resource_type, resource_name,
       concat_ws(' ', permission_type, principal, operation, pattern_type, 'from', host), NULL, end_commit_status
FROM acls WHERE valid_to_offset IS NOT NULL
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at, 'alter client quota', 'QUOTA', concat(entity_name, ' ', key),
       IF(last_to <=> valid_from_offset, CAST(last_value AS STRING), NULL), CAST(value AS STRING), commit_status
FROM quota_versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'alter client quota', 'QUOTA', concat(entity_name, ' ', key),
       CAST(value AS STRING), NULL, end_commit_status
FROM quota_versions WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at, 'alter SCRAM credential', 'USER', concat(name, ' ', mechanism),
       IF(last_to <=> valid_from_offset, 'set', NULL), 'set', commit_status
FROM scram_versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'delete SCRAM credential', 'USER', concat(name, ' ', mechanism), 'set',
       NULL, end_commit_status
FROM scram_versions WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT cluster_id, valid_from_offset, valid_from_at,
       IF(last_to <=> valid_from_offset, 'renew delegation token', 'create delegation token'), 'TOKEN', owner,
       IF(last_to <=> valid_from_offset, CAST(timestamp_millis(last_expiration) AS STRING), NULL),
       CAST(timestamp_millis(expiration_timestamp) AS STRING), commit_status
FROM token_versions
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'expire delegation token', 'TOKEN', owner,
       CAST(timestamp_millis(expiration_timestamp) AS STRING), NULL, end_commit_status
FROM token_versions WHERE valid_to_offset IS NOT NULL AND NOT next_from <=> valid_to_offset
UNION ALL
SELECT cluster_id, `offset`, changed_at, 'update feature', 'FEATURE', name, CAST(level_before AS STRING),
       CAST(level AS STRING), commit_status
FROM feature_changes
UNION ALL
SELECT cluster_id, valid_to_offset, valid_to_at, 'unregister broker', 'BROKER', CAST(broker_id AS STRING),
       concat('epoch ', broker_epoch), NULL, end_commit_status
FROM brokers WHERE ended_by = 'UNREGISTER_BROKER_RECORD'
