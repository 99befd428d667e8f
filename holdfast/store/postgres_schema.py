"""The tables and functions of a store in PostgreSQL.

Each call of the store is one call of one function here: one round trip, one transaction.  Every
write first updates the only row of `meta`, so writers take turns in commit order and revisions have
no gaps.  Lapsed leases are dropped by the next call, before it does anything else.

Store time is a number of seconds that follows the server's clock forwards only: when that clock is
set back, store time stops for that moment and continues from there.
"""

VERSION = 1

TABLES = """
create schema if not exists {schema};

create table {schema}.meta (
    one boolean primary key default true check (one),
    version integer not null,
    revision bigint not null,
    compacted bigint not null,
    now_s double precision not null,
    clock timestamptz not null
);

create table {schema}.items (
    key text collate "C" primary key,
    value bytea not null,
    revision bigint not null,
    created bigint not null,
    lease bigint
);
create index items_by_lease on {schema}.items (lease) where lease is not null;

create table {schema}.history (
    revision bigint not null,
    key text collate "C" not null,
    value bytea,
    created bigint,
    lease bigint,
    primary key (revision, key)
);

create table {schema}.leases (
    id bigint generated always as identity primary key,
    ttl_s double precision not null,
    deadline_s double precision not null
);

insert into {schema}.meta values (true, {version}, 0, 0, 0, clock_timestamp());
"""

PUBLISH = """
create function {schema}.publish(made bigint, kept bigint) returns void
language plpgsql as $$
begin
    update {schema}.meta set revision = made, compacted = greatest(compacted, made - kept);
    delete from {schema}.history where revision <= made - kept;
    perform pg_notify({channel}, '');
end $$;
"""

SETTLE = """
-- Take the turn to write, move store time on and drop lapsed leases; return the revision.
create function {schema}.settle(kept bigint) returns bigint
language plpgsql as $$
declare
    present bigint;
    lapsed bigint[];
begin
    update {schema}.meta
        set now_s = now_s + greatest(0, extract(epoch from clock_timestamp() - clock)),
            clock = clock_timestamp()
        returning revision into present;
    with gone as (
        delete from {schema}.leases
        where deadline_s <= (select now_s from {schema}.meta) returning id
    )
    select array_agg(id) into lapsed from gone;
    if lapsed is null then
        return present;
    end if;
    with gone as (
        delete from {schema}.items where lease = any(lapsed) returning key
    )
    insert into {schema}.history (revision, key) select present + 1, gone.key from gone;
    if found then
        present := present + 1;
        perform {schema}.publish(present, kept);
    end if;
    return present;
end $$;

-- Settle before a read, if there is anything to settle.
create function {schema}.tidy(kept bigint) returns void
language plpgsql as $$
begin
    if exists (
        select from {schema}.meta m
        where clock_timestamp() < m.clock
            or m.now_s + extract(epoch from clock_timestamp() - m.clock)
                >= (select min(deadline_s) from {schema}.leases)
    ) then
        perform {schema}.settle(kept);
    end if;
end $$;
"""

READ = """
create function {schema}.read(kept bigint, low text, high text)
returns table (at bigint, key text, value bytea, revision bigint, created bigint, lease bigint)
language plpgsql as $$
#variable_conflict use_column
begin
    perform {schema}.tidy(kept);
    return query
        select m.revision, i.key, i.value, i.revision, i.created, i.lease
        from {schema}.meta m
        left join {schema}.items i on i.key >= low and (high is null or i.key < high)
        order by i.key;
end $$;

create function {schema}.changes(kept bigint, low text, high text, since bigint)
returns table (
    at bigint, compacted bigint, lapse_s double precision,
    revision bigint, key text, value bytea, created bigint, lease bigint
)
language plpgsql as $$
#variable_conflict use_column
begin
    perform {schema}.tidy(kept);
    return query
        select m.revision, m.compacted,
            (select min(l.deadline_s) - m.now_s from {schema}.leases l)
                - greatest(0, extract(epoch from clock_timestamp() - m.clock))::double precision,
            h.revision, h.key, h.value, h.created, h.lease
        from {schema}.meta m
        left join {schema}.history h
            on h.revision > since and h.key >= low and (high is null or h.key < high)
        order by h.revision, h.key;
end $$;
"""

COMMIT = """
create function {schema}.commit(
    kept bigint, floor bigint, guard_keys text[], guard_revisions bigint[],
    keys text[], contents bytea[], under bigint[], deleted text[]
)
returns table (outcome text, at bigint)
language plpgsql as $$
declare
    present bigint := {schema}.settle(kept);
    gone bigint;
    made bigint;
begin
    if present < floor then
        return query select 'lost', present;
        return;
    end if;
    if exists (
        select from unnest(guard_keys, guard_revisions) g (key, revision)
        left join {schema}.items i on i.key = g.key
        where coalesce(i.revision, 0) <> g.revision
    ) then
        return query select 'guard', present;
        return;
    end if;
    if exists (
        select from unnest(under) u (id)
        where u.id is not null and not exists (select from {schema}.leases l where l.id = u.id)
    ) then
        return query select 'lease', present;
        return;
    end if;
    with d as (delete from {schema}.items i where i.key = any(deleted) returning i.key)
    insert into {schema}.history (revision, key) select present + 1, d.key from d;
    get diagnostics gone = row_count;
    with p as (
        insert into {schema}.items as i
        select c.key, c.value, present + 1, present + 1, c.lease
        from unnest(keys, contents, under) c (key, value, lease)
        on conflict (key) do update set
            value = excluded.value, revision = excluded.revision, lease = excluded.lease
        returning i.*
    )
    insert into {schema}.history select p.revision, p.key, p.value, p.created, p.lease from p;
    get diagnostics made = row_count;
    if gone + made > 0 then
        present := present + 1;
        perform {schema}.publish(present, kept);
    end if;
    return query select 'done', present;
end $$;
"""

LEASES = """
create function {schema}.grant_lease(kept bigint, lasting_s double precision) returns bigint
language plpgsql as $$
declare
    made bigint;
begin
    perform {schema}.settle(kept);
    insert into {schema}.leases (ttl_s, deadline_s)
        select lasting_s, m.now_s + lasting_s from {schema}.meta m returning id into made;
    perform pg_notify({channel}, '');
    return made;
end $$;

create function {schema}.keep_lease(kept bigint, lease bigint) returns boolean
language plpgsql as $$
begin
    perform {schema}.settle(kept);
    update {schema}.leases l
        set deadline_s = l.ttl_s + (select m.now_s from {schema}.meta m) where l.id = lease;
    return found;
end $$;

create function {schema}.revoke_lease(kept bigint, lease bigint) returns void
language plpgsql as $$
begin
    perform {schema}.settle(kept);
    update {schema}.leases l set deadline_s = '-infinity' where l.id = lease;
    perform {schema}.settle(kept);
end $$;
"""

SCHEMA = TABLES + PUBLISH + SETTLE + READ + COMMIT + LEASES
