-- DuckDB on a sweep. From the repository's root, after
--   servegrid sweep examples/analysis/grid.yaml --output runs/analysis
-- run them all with `duckdb < examples/analysis/queries.sql`, or paste one.

-- What is in the file: a row for each column.
describe select * from 'runs/analysis/results.parquet';

-- The frontier that the spec asks for.
select gpu, workers, router_policy, load_rate, round(avg(p99_ttft_ms)) as p99_ttft_ms, round(avg(output_throughput_tok_s_per_gpu)) as tok_s_per_gpu
from 'runs/analysis/results.parquet' where on_frontier group by all order by tok_s_per_gpu desc;

-- The cheapest point for each rate under another SLA; replicates count by their mean.
with points as (
  select gpu, workers, router_policy, load_rate, avg(p99_ttft_ms) as p99_ttft_ms, avg(p99_tpot_ms) as p99_tpot_ms,
         any_value(cost_usd / gpu_hours * gpus) as usd_per_hour
  from 'runs/analysis/results.parquet' where status = 'ok' group by all
)
select distinct on (load_rate) load_rate, gpu, workers, router_policy, round(usd_per_hour, 2) as usd_per_hour, round(p99_ttft_ms) as p99_ttft_ms
from points where p99_ttft_ms <= 2500 and p99_tpot_ms <= 25 order by load_rate, usd_per_hour;

-- A heat map: workers down, rates across, the best p99 TTFT in the cells.
pivot (select workers, load_rate, p99_ttft_ms from 'runs/analysis/results.parquet')
on load_rate using round(min(p99_ttft_ms)) group by workers order by workers;

-- Which axis moves the p99 TTFT most: the spread between the means of its values.
with m as (select * from 'runs/analysis/results.parquet' where status = 'ok')
select 'gpu' as axis, max(mean) / min(mean) as ratio from (select avg(p99_ttft_ms) as mean from m group by gpu)
union all select 'workers', max(mean) / min(mean) from (select avg(p99_ttft_ms) as mean from m group by workers)
union all select 'router_policy', max(mean) / min(mean) from (select avg(p99_ttft_ms) as mean from m where workers > 1 group by router_policy)
union all select 'load_rate', max(mean) / min(mean) from (select avg(p99_ttft_ms) as mean from m group by load_rate)
order by ratio desc;

-- Figures that differ most between replicates: how far to trust them.
select round(avg(deviation), 4) as relative_deviation, figure from (
  select 'p99_ttft_ms' as figure, stddev_pop(p99_ttft_ms) / avg(p99_ttft_ms) as deviation from 'runs/analysis/results.parquet' group by gpu, workers, router_policy, load_rate
  union all
  select 'output_throughput_tok_s', stddev_pop(output_throughput_tok_s) / avg(output_throughput_tok_s) from 'runs/analysis/results.parquet' group by gpu, workers, router_policy, load_rate
) group by figure order by relative_deviation desc;

-- Single requests of all points: the share of first tokens within a second, by point.
select p.gpu, p.workers, p.router_policy, p.load_rate, round(avg((r.ttft_ms <= 1000)::int), 3) as within_a_second
from 'runs/analysis/requests/**/*.parquet' r join 'runs/analysis/results.parquet' p using (id)
group by all order by within_a_second desc limit 10;

-- The SLA of the study, out of the file's metadata.
select decode(value) as sla from parquet_kv_metadata('runs/analysis/results.parquet') where decode(key) = 'servegrid.constraints';
