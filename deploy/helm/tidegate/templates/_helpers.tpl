{{/* The name of every object in this release. The chart's name is added unless the release's name contains it. */}}
{{- define "tidegate.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{/* The labels that select the pods. Kubernetes does not allow them to change in an existing Deployment. */}}
{{- define "tidegate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tidegate.labels" -}}
{{ include "tidegate.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "tidegate.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "tidegate.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{/* The Secret with the environment. Without a token no pod would start, so the installation fails instead. */}}
{{- define "tidegate.secret" -}}
{{- if .Values.secret.existing -}}
{{ .Values.secret.existing }}
{{- else -}}
{{- $_ := required "secret.values.TIDEGATE_ADMIN_TOKEN or secret.existing is required: the admin address needs a token" .Values.secret.values.TIDEGATE_ADMIN_TOKEN -}}
{{ include "tidegate.fullname" . }}
{{- end -}}
{{- end }}

{{/* "true" if more than one pod can run, otherwise empty. */}}
{{- define "tidegate.many" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) -}}true{{- end -}}
{{- end }}

{{/* "true" if conversations are stored in a directory of the pod, otherwise empty. */}}
{{- define "tidegate.embedded" -}}
{{- if hasPrefix "embedded:" .Values.store.url -}}true{{- end -}}
{{- end }}

{{/* Fails if replicas would not share a store. */}}
{{- define "tidegate.validate" -}}
{{- if and (include "tidegate.many" .) (or (include "tidegate.embedded" .) (hasPrefix "memory:" .Values.store.url)) -}}
{{- fail (printf "store.url is %s, which is for one pod: several replicas need redis://" .Values.store.url) -}}
{{- end -}}
{{- end }}
