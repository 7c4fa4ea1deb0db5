/* Made by web/replies.mjs out of /openapi.json: not to be edited. Without success and
 * degraded, which every reply may have, and without the replies that have nothing else. */
export interface Replies {
    "GET /api/welcome": {
        registration: boolean;
        banned: boolean;
        contact: string;
    };
    "POST /api/register": {
        uid: number;
    };
    "POST /api/login": {
        uid: number;
        username: string;
        token: string;
    };
    "GET /api/me": {
        uid: number;
        username: string;
        balance: string;
        reserved?: string | null;
        free?: string | null;
        permission: number;
        account: "active" | "stopped";
        account_why?: string | null;
        account_since?: string | null;
    };
    "GET /api/sessions": {
        sessions: {
            sid: string;
            current: boolean;
            login_time: string;
            last_activity: string;
            ip_address: string;
            user_agent: string;
        }[];
    };
    "GET /api/ledger": {
        entries: {
            at: string;
            kind: "opening" | "charge" | "recharge" | "deduction" | "reversal";
            amount: string;
            query_id?: string | null;
            doi?: string | null;
        }[];
        next?: string | null;
    };
    "GET /api/tags": {
        tags: {
            tag: string;
            type: string;
            journals: number;
        }[];
    };
    "GET /api/journals": {
        journals: {
            name: string;
            full_name?: string | null;
            data_range?: string | null;
            update_date?: string | null;
            price: number;
            years: Record<string, number>;
        }[];
    };
    "POST /api/estimate": {
        papers: number;
        cost: string;
        free?: string | null;
        suffices?: boolean | null;
        without_abstract?: number | null;
        simulated: boolean;
        per_journal: {
            journal: string;
            papers: number;
            price: number;
            cost: string;
        }[];
        reason_code?:
            | "funds"
            | "account"
            | "banned"
            | "admin"
            | "expired"
            | "unrecorded"
            | "refused"
            | "other"
            | "account_stopped"
            | "repairing"
            | "new_runs_off"
            | "drained"
            | "no_permission"
            | "no_key"
            | "keys_resting"
            | "service_down"
            | "queued"
            | "rate_limit"
            | null;
        reason_facts?: {
            position?: number | null;
            of?: number | null;
            others?: number | null;
            permission?: number | null;
            nodes?: number | null;
            keys?: number | null;
            limit?: number | null;
            since?: string | null;
            until?: string | null;
            cause?: string | null;
            words?: string | null;
        } | null;
        seconds_min?: number | null;
        seconds_max?: number | null;
    };
    "POST /api/distill/estimate": {
        papers: number;
        cost: string;
        free?: string | null;
        suffices?: boolean | null;
    };
    "POST /api/distill": {
        query_id: string;
    };
    "POST /api/download/create": {
        task_id: string;
    };
    "GET /api/download/status": {
        state: "PENDING" | "PROCESSING" | "READY" | "FAILED";
        progress: number;
        query_id: string;
        type: "csv" | "bib" | "ris";
        scope: "relevant" | "all";
        file_name: string;
        streamed: boolean;
        error?: string | null;
        bytes?: number | null;
        expires_at?: string | null;
    };
    "GET /api/queries": {
        queries: {
            query_id: string;
            state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
            reason?: string | null;
            reason_code?:
                | "funds"
                | "account"
                | "banned"
                | "admin"
                | "expired"
                | "unrecorded"
                | "refused"
                | "other"
                | "account_stopped"
                | "repairing"
                | "new_runs_off"
                | "drained"
                | "no_permission"
                | "no_key"
                | "keys_resting"
                | "service_down"
                | "queued"
                | "rate_limit"
                | null;
            reason_facts?: {
                position?: number | null;
                of?: number | null;
                others?: number | null;
                permission?: number | null;
                nodes?: number | null;
                keys?: number | null;
                limit?: number | null;
                since?: string | null;
                until?: string | null;
                cause?: string | null;
                words?: string | null;
            } | null;
            question: string;
            papers: number;
            finished: number;
            relevant: number;
            failed: number;
            not_judged: number;
            withdrawn: number;
            cost: string;
            estimate: string;
            reserved: string;
            workers: number;
            seconds_left_min?: number | null;
            seconds_left_max?: number | null;
            created_at: string;
            start_time?: string | null;
            end_time?: string | null;
            is_distillation: boolean;
            original_query_id?: string | null;
            simulated: boolean;
            distillations?: string[] | null;
        }[];
        next?: string | null;
    };
    "POST /api/queries": {
        query_id: string;
    };
    "GET /api/queries/{id}": {
        query_id: string;
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
        reason?: string | null;
        reason_code?:
            | "funds"
            | "account"
            | "banned"
            | "admin"
            | "expired"
            | "unrecorded"
            | "refused"
            | "other"
            | "account_stopped"
            | "repairing"
            | "new_runs_off"
            | "drained"
            | "no_permission"
            | "no_key"
            | "keys_resting"
            | "service_down"
            | "queued"
            | "rate_limit"
            | null;
        reason_facts?: {
            position?: number | null;
            of?: number | null;
            others?: number | null;
            permission?: number | null;
            nodes?: number | null;
            keys?: number | null;
            limit?: number | null;
            since?: string | null;
            until?: string | null;
            cause?: string | null;
            words?: string | null;
        } | null;
        question: string;
        papers: number;
        finished: number;
        relevant: number;
        failed: number;
        not_judged: number;
        withdrawn: number;
        cost: string;
        estimate: string;
        reserved: string;
        workers: number;
        seconds_left_min?: number | null;
        seconds_left_max?: number | null;
        created_at: string;
        start_time?: string | null;
        end_time?: string | null;
        is_distillation: boolean;
        original_query_id?: string | null;
        simulated: boolean;
        distillations?: string[] | null;
    };
    "POST /api/queries/{id}/pause": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "POST /api/queries/{id}/resume": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "POST /api/queries/{id}/terminate": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "POST /api/queries/{id}/retry_failed": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "GET /api/queries/{id}/scope": {
        query_id: string;
        question: string;
        is_distillation: boolean;
        distilled_from?: {
            query_id: string;
            question: string;
            papers: number;
            relevant: number;
            simulated: boolean;
        } | null;
        journals: {
            name: string;
            price?: number | null;
            papers?: number | null;
        }[];
        year_from?: number | null;
        year_to?: number | null;
        papers: number;
        without_abstract?: number | null;
        simulated: boolean;
        judged_by: {
            model: string;
            simulated: boolean;
            prompt_digest: string;
            prompt: string;
            since: string;
        }[];
        created_at: string;
        start_time?: string | null;
        end_time?: string | null;
    };
    "GET /api/queries/{id}/results": {
        results: {
            doi: string;
            title?: string | null;
            journal: string;
            year: number;
            relevant?: boolean | null;
            reason?: string | null;
            error?: string | null;
            not_judged: boolean;
            withdrawn: boolean;
            simulated: boolean;
        }[];
        next?: string | null;
        restarted: boolean;
    };
    "GET /api/queries/{id}/paper": {
        doi: string;
        title?: string | null;
        journal: string;
        year: number;
        relevant?: boolean | null;
        reason?: string | null;
        error?: string | null;
        not_judged: boolean;
        withdrawn: boolean;
        simulated: boolean;
        authors?: string | null;
        printed_in?: string | null;
        abstract?: string | null;
        bibtex?: string | null;
    };
    "POST /api/admin/login": {
        uid: number;
        username: string;
        token: string;
        role: "super" | "admin";
    };
    "GET /api/admin/me": {
        uid: number;
        username: string;
        role: "super" | "admin";
    };
    "GET /api/admin/sessions": {
        sessions: {
            sid: string;
            current: boolean;
            login_time: string;
            last_activity: string;
            ip_address: string;
            user_agent: string;
        }[];
    };
    "GET /api/admin/admins": {
        admins: {
            uid: number;
            username: string;
            role: "super" | "admin";
            created_at: string;
        }[];
    };
    "POST /api/admin/admins": {
        uid: number;
    };
    "POST /api/admin/admins/{admin}/role": {
        uid: number;
        role: "super" | "admin";
    };
    "GET /api/admin/users": {
        users: {
            uid: number;
            username: string;
            balance: string;
            permission: number;
            banned: boolean;
            created_at: string;
        }[];
        next?: string | null;
    };
    "GET /api/admin/users/{uid}": {
        uid: number;
        username: string;
        balance: string;
        permission: number;
        banned: boolean;
        created_at: string;
        reserved?: string | null;
        free?: string | null;
        runs: number;
        runs_active: number;
        account: "active" | "stopped";
        account_why?: string | null;
        account_since?: string | null;
    };
    "POST /api/admin/users/{uid}/permission": {
        uid: number;
        username: string;
        balance: string;
        permission: number;
        banned: boolean;
        created_at: string;
        reserved?: string | null;
        free?: string | null;
        runs: number;
        runs_active: number;
        account: "active" | "stopped";
        account_why?: string | null;
        account_since?: string | null;
    };
    "POST /api/admin/users/{uid}/ban": {
        uid: number;
        username: string;
        balance: string;
        permission: number;
        banned: boolean;
        created_at: string;
        reserved?: string | null;
        free?: string | null;
        runs: number;
        runs_active: number;
        account: "active" | "stopped";
        account_why?: string | null;
        account_since?: string | null;
    };
    "POST /api/admin/users/{uid}/recharge": {
        balance: string;
    };
    "POST /api/admin/users/{uid}/deduct": {
        balance: string;
    };
    "GET /api/admin/users/{uid}/ledger": {
        records: {
            source: "redis" | "mysql";
            number: number;
            at: string;
            kind: "opening" | "charge" | "recharge" | "deduction" | "reversal";
            amount: string;
            query_id?: string | null;
            doi?: string | null;
        }[];
        next?: string | null;
    };
    "GET /api/admin/users/{uid}/runs": {
        queries: {
            query_id: string;
            state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
            reason?: string | null;
            reason_code?:
                | "funds"
                | "account"
                | "banned"
                | "admin"
                | "expired"
                | "unrecorded"
                | "refused"
                | "other"
                | "account_stopped"
                | "repairing"
                | "new_runs_off"
                | "drained"
                | "no_permission"
                | "no_key"
                | "keys_resting"
                | "service_down"
                | "queued"
                | "rate_limit"
                | null;
            reason_facts?: {
                position?: number | null;
                of?: number | null;
                others?: number | null;
                permission?: number | null;
                nodes?: number | null;
                keys?: number | null;
                limit?: number | null;
                since?: string | null;
                until?: string | null;
                cause?: string | null;
                words?: string | null;
            } | null;
            question: string;
            papers: number;
            finished: number;
            relevant: number;
            failed: number;
            not_judged: number;
            withdrawn: number;
            cost: string;
            estimate: string;
            reserved: string;
            workers: number;
            seconds_left_min?: number | null;
            seconds_left_max?: number | null;
            created_at: string;
            start_time?: string | null;
            end_time?: string | null;
            is_distillation: boolean;
            original_query_id?: string | null;
            simulated: boolean;
            distillations?: string[] | null;
        }[];
        next?: string | null;
    };
    "POST /api/admin/runs/{id}/terminate": {
        state: "QUEUED" | "RUNNING" | "PAUSED" | "DONE" | "CANCELLED" | "FAILED";
    };
    "GET /api/admin/switches": {
        switches: {
            name: "registration" | "new_runs";
            on: boolean;
            about: string;
        }[];
    };
    "POST /api/admin/switches": {
        name: "registration" | "new_runs";
        on: boolean;
    };
    "POST /api/admin/toggle_registration": {
        enabled: boolean;
    };
    "GET /api/admin/keys": {
        keys: {
            id: number;
            key: string;
            name: string;
            service: "chat" | "embedding";
            rpm_limit: number;
            tpm_limit: number;
            state: "active" | "off" | "refused" | "resting" | "capped";
            rests_ms: number;
            last_error?: string | null;
            last_error_at?: string | null;
            active: boolean;
            minute_cap?: number | null;
            day_cap?: number | null;
            month_cap?: number | null;
        }[];
    };
    "POST /api/admin/keys": {
        id: number;
    };
    "POST /api/admin/keys/{key}": {
        id: number;
        key: string;
        name: string;
        service: "chat" | "embedding";
        rpm_limit: number;
        tpm_limit: number;
        state: "active" | "off" | "refused" | "resting" | "capped";
        rests_ms: number;
        last_error?: string | null;
        last_error_at?: string | null;
        active: boolean;
        minute_cap?: number | null;
        day_cap?: number | null;
        month_cap?: number | null;
    };
    "POST /api/admin/keys/{key}/wake": {
        id: number;
        key: string;
        name: string;
        service: "chat" | "embedding";
        rpm_limit: number;
        tpm_limit: number;
        state: "active" | "off" | "refused" | "resting" | "capped";
        rests_ms: number;
        last_error?: string | null;
        last_error_at?: string | null;
        active: boolean;
        minute_cap?: number | null;
        day_cap?: number | null;
        month_cap?: number | null;
    };
    "POST /api/admin/keys/{key}/test": {
        key: string;
        outcome: "works" | "refused" | "no_money" | "limited" | "unreachable" | "failed";
        words?: string | null;
        status?: number | null;
        latency_ms: number;
    };
    "POST /api/admin/nodes/{id}/drain": {
        id: string;
        drained: boolean;
    };
    "POST /api/admin/nodes/{id}/undrain": {
        id: string;
        drained: boolean;
    };
    "POST /api/admin/prompts/reload": {
        prompt: string;
    };
    "GET /api/admin/overview": {
        at: string;
        well: boolean;
        rpm: {
            used: number;
            limit: number;
            slots: number[];
        };
        tpm: {
            used: number;
            limit: number;
            slots: number[];
        };
        backlog: {
            queued: number;
            oldest_seconds: number;
            running: number;
            archive_waiting: number;
            downloads_waiting: number;
            downloads_building: number;
        };
        workers: {
            total: number;
            runs: {
                node: string;
                user: number;
                query_id: string;
                workers: number;
            }[];
        };
        nodes: {
            id: string;
            name: string;
            takes_work: boolean;
            drained: boolean;
            workers: number;
            ai_latency_us: number;
            silent_ms: number;
            late_us: number;
            resident_bytes: number;
            tasks: number;
            prompt: string;
        }[];
        stores: {
            redis: {
                up: boolean;
                latency_us: number;
                memory_bytes: number;
                memory_bytes_max: number;
                hits: number;
                misses: number;
                hits_permille: number;
                clients: number;
                problem?: string | null;
            };
            mysql: {
                up: boolean;
                latency_us: number;
                memory_bytes: number;
                memory_bytes_max: number;
                hits: number;
                misses: number;
                hits_permille: number;
                clients: number;
                problem?: string | null;
            };
            redis_slowlog: number;
        };
        billing: {
            records: number;
            records_max: number;
            alarm: boolean;
            moves: number;
            drift_cents: number;
            findings: number;
            audited_at?: string | null;
        };
        sessions: {
            users: number;
            admins: number;
        };
        keys: {
            id: number;
            key: string;
            name: string;
            state: "active" | "off" | "refused" | "resting" | "capped";
            rests_ms: number;
            requests_used: number;
            requests_limit: number;
            tokens_used: number;
            tokens_limit: number;
            caps: {
                period: "minute" | "day" | "month";
                used: number;
                cap?: number | null;
            }[];
            last_error?: string | null;
            last_error_at?: string | null;
        }[];
        alerts: {
            name: string;
            text: string;
            since: string;
        }[];
        standing: {
            reason_code?:
                | "funds"
                | "account"
                | "banned"
                | "admin"
                | "expired"
                | "unrecorded"
                | "refused"
                | "other"
                | "account_stopped"
                | "repairing"
                | "new_runs_off"
                | "drained"
                | "no_permission"
                | "no_key"
                | "keys_resting"
                | "service_down"
                | "queued"
                | "rate_limit"
                | null;
            reason_facts?: {
                position?: number | null;
                of?: number | null;
                others?: number | null;
                permission?: number | null;
                nodes?: number | null;
                keys?: number | null;
                limit?: number | null;
                since?: string | null;
                until?: string | null;
                cause?: string | null;
                words?: string | null;
            } | null;
            runs: number;
            user: number;
            query_id: string;
        }[];
        ai_errors: {
            kind: string;
            count: number;
            words: string;
            last_at?: string | null;
        }[];
    };
    "GET /api/admin/audit": {
        actions: {
            id: number;
            at: string;
            admin_uid: number;
            admin: string;
            ip_address: string;
            action: string;
            user?: number | null;
            target?: string | null;
            outcome: "done" | "begun" | "repeated" | "refused" | "failed";
            error?: string | null;
            request_id?: string | null;
            reason?: string | null;
            asked?: string | null;
            before?: {
                balance?: string | null;
                permission?: number | null;
                banned?: boolean | null;
                password?: string | null;
                role?: string | null;
                state?: string | null;
                record?: string | null;
                on?: boolean | null;
                drained?: boolean | null;
                prompt?: string | null;
                active?: boolean | null;
                name?: string | null;
                key?: string | null;
                service?: string | null;
                rpm_limit?: number | null;
                tpm_limit?: number | null;
                minute_cap?: number | null;
                day_cap?: number | null;
                month_cap?: number | null;
            } | null;
            after?: {
                balance?: string | null;
                permission?: number | null;
                banned?: boolean | null;
                password?: string | null;
                role?: string | null;
                state?: string | null;
                record?: string | null;
                on?: boolean | null;
                drained?: boolean | null;
                prompt?: string | null;
                active?: boolean | null;
                name?: string | null;
                key?: string | null;
                service?: string | null;
                rpm_limit?: number | null;
                tpm_limit?: number | null;
                minute_cap?: number | null;
                day_cap?: number | null;
                month_cap?: number | null;
            } | null;
        }[];
        next?: string | null;
    };
}
